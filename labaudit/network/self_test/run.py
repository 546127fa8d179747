"""Runs the egress self-test: controls, the attack from inside, controls again; stores one document with all of it.

The engine lends the places: a way to run a program in the sandbox under test, a way to run it unrestricted, and the
canaries. Nothing here knows which engine that is.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from labaudit.core.canonical import canonical_bytes
from labaudit.core.clock import Clock, SystemClock, rfc3339
from labaudit.network.enforcer import EnforcementState
from labaudit.network.policy import EgressPolicy
from labaudit.network.self_test import probe
from labaudit.network.self_test.verdict import Inside, Phase, Result, Try, Verdict, judge

PROBE_SECONDS = 30.0


class Executed(Protocol):
    """How a program ended."""

    @property
    def exit_code(self) -> int | None: ...

    @property
    def stdout(self) -> bytes: ...


Execute = Callable[[tuple[str, ...], float], Executed]
"""Runs a program somewhere, with a bound in seconds."""


@dataclass(frozen=True)
class CanaryPoint:
    """One way to reach one canary.

    `control` is the unrestricted place from which it must be reachable: a sandbox, or the host. `none` is for one more
    address of a canary that another point shows to be alive.
    """

    canary: str
    kind: Literal["tcp", "udp", "abstract"]
    address: str
    port: int = 0
    control: Literal["sandbox", "host", "none"] = "sandbox"


@dataclass(frozen=True)
class ProxiedPair:
    """For an allowlist: a name and port of a canary that the policy allows, and one that it does not."""

    canary: str
    allowed: tuple[str, int]
    denied: tuple[str, int]


@dataclass(frozen=True)
class SelfTestOutcome:
    """The verdict, the stored document's reference, and the cases as state_inventory.json lists them."""

    result: Result
    reasons: tuple[str, ...]
    artifact_ref: str
    document: bytes
    cases: tuple[dict[str, object], ...]

    @property
    def passed(self) -> bool:
        return self.result == "pass"


@dataclass
class EgressSelfTest:
    """Everything that the engine lends. `arrivals` gives the tokens that the canaries noted so far."""

    engine: str
    restricted: Execute
    unrestricted: Execute
    points: Sequence[CanaryPoint]
    arrivals: Callable[[], Iterable[str]]
    store: Callable[[bytes], str]
    """Keeps the document and gives its artifact reference."""
    proxied: ProxiedPair | None = None
    proxy_events: Callable[[], Sequence[bytes]] = tuple
    """The proxy's lines, complete; asked once, after the attack."""
    python: str = "python3"
    settle_seconds: float = 0.3
    """How long a token may still be on its way when the last phase has ended."""
    clock: Clock = field(default_factory=SystemClock)

    def run(self, policy: EgressPolicy | None, enforcement: EnforcementState) -> SelfTestOutcome:
        """Attacks, judges and stores. What goes wrong on the way makes it inconclusive, never a pass."""
        began = rfc3339(self.clock.now())
        tries = self._plan()
        inside: dict[int, Inside] = {}
        seen_from: dict[str, object] = {}
        for phase in ("control_before", "restricted", "control_after"):
            self._phase(phase, tries, inside, seen_from)
        events = tuple(self.proxy_events()) if self.proxied else ()
        time.sleep(self.settle_seconds)
        verdict = judge(tries, inside, frozenset(self.arrivals()), _blocked(events))
        document = canonical_bytes(self._document(verdict, policy, enforcement, began, seen_from, events))
        reference = self.store(document)
        cases = inventory_cases(verdict, reference)
        return SelfTestOutcome(verdict.result, verdict.reasons, reference, document, cases)

    def _plan(self) -> list[Try]:
        found: list[Try] = []
        places = _places(self.points)

        def add(phase: Phase, kind: str, canary: str, address: str, port: int, expected: str, host: str = "") -> None:
            token, place = secrets.token_hex(16), places.get(address, "")
            found.append(Try(len(found), phase, kind, canary, address, port, token, expected, host, place))  # type: ignore[arg-type]

        for phase, expected in (("control_before", "allow"), ("restricted", "block"), ("control_after", "allow")):
            for point in self.points:
                if phase != "restricted" and point.control == "none":
                    continue
                add(phase, point.kind, point.canary, point.address, point.port, expected)  # type: ignore[arg-type]
        if self.proxied:
            for (host, port), expected in ((self.proxied.allowed, "allow"), (self.proxied.denied, "block")):
                add("restricted", "proxied", self.proxied.canary, "", port, expected, host)
        return found

    def _phase(self, phase: str, tries: list[Try], inside: dict[int, Inside], seen_from: dict[str, object]) -> None:
        mine = [tried for tried in tries if tried.phase == phase]
        if phase == "restricted":
            seen_from[phase] = _tell(self.restricted, self.python, mine, inside)
            return
        from_host = {(point.canary, point.kind) for point in self.points if point.control == "host"}
        here = [tried for tried in mine if (tried.canary, tried.kind) in from_host]
        there = [tried for tried in mine if tried not in here]
        if here:
            for tried in here:
                inside[tried.id] = Inside(*probe.attempt(_given(tried)))
        if there:
            seen_from[phase] = _tell(self.unrestricted, self.python, there, inside)

    def _document(
        self,
        verdict: Verdict,
        policy: EgressPolicy | None,
        enforcement: EnforcementState,
        began: str,
        seen_from: Mapping[str, object],
        events: Sequence[bytes],
    ) -> dict[str, object]:
        return {
            "schema_version": "egress_self_test_v1",
            "engine": self.engine,
            "mode": enforcement.mode,
            "enforcement": enforcement.enforcement,
            "policy": policy.config() if policy else None,
            "started_at": began,
            "ended_at": rfc3339(self.clock.now()),
            "result": verdict.result,
            "reasons": list(verdict.reasons),
            "seen_from": dict(seen_from),
            "cases": [
                {
                    "target": case.tried.target, "phase": case.tried.phase, "kind": case.tried.kind,
                    "canary": case.tried.canary, "place": case.tried.place, "host": case.tried.host,
                    "port": case.tried.port, "token": case.tried.token, "expected": case.tried.expected,
                    "inside": {"result": case.inside.result, "detail": case.inside.detail},
                    "outside": {"token_arrived": case.arrived},
                    "observed": case.observed, "ok": case.ok, "why": case.why,
                }
                for case in verdict.cases
            ],
            "proxy_events": [json.loads(line) for line in events],
        }  # fmt: skip


def _places(points: Sequence[CanaryPoint]) -> dict[str, str]:
    """A name for each address, the same in every phase."""
    found: dict[str, str] = {}
    for point in points:
        if point.kind == "abstract":
            found[point.address] = "abstract socket"
        elif point.address.startswith("127."):
            found[point.address] = "loopback"
        elif point.address not in found:
            found[point.address] = f"address {sum(name.startswith('address') for name in found.values()) + 1}"
    return found


def inventory_cases(verdict: Verdict, reference: str) -> tuple[dict[str, object], ...]:
    """The cases as state_inventory.json wants them."""
    return tuple(
        {
            "target": case.tried.target,
            "expected": case.tried.expected,
            "observed": case.observed,
            "ok": case.ok,
            "artifact_ref": reference,
        }
        for case in verdict.cases
    )


def probe_command(python: str, tries: Sequence[Try]) -> tuple[str, ...]:
    """The probe as a program: its source goes along, so nothing has to be mounted."""
    return (python, "-c", Path(probe.__file__).read_text(), json.dumps([_given(tried) for tried in tries]))


def run_here(command: tuple[str, ...], seconds: float) -> Executed:
    """An unrestricted place: the runner's own machine."""
    words = (sys.executable, *command[1:]) if command[0] == "python3" else command
    done = subprocess.run(words, capture_output=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL)
    return _Ended(done.returncode, done.stdout)


@dataclass(frozen=True)
class _Ended:
    exit_code: int | None
    stdout: bytes


def _given(tried: Try) -> dict[str, object]:
    return {
        "id": tried.id, "kind": tried.kind, "address": tried.address, "port": tried.port, "token": tried.token,
        "host": tried.host,
    }  # fmt: skip


def _tell(execute: Execute, python: str, tries: Sequence[Try], inside: dict[int, Inside]) -> dict[str, object]:
    """Runs the tries somewhere and reads what was told; a place that fails has told nothing, with the reason."""
    try:
        done = execute(probe_command(python, tries), PROBE_SECONDS)
        told = json.loads(done.stdout.strip().splitlines()[-1])
        for row in told["results"]:
            inside[int(row["id"])] = Inside(str(row["result"]), str(row["detail"])[:200])
        return {"interfaces": [str(name) for name in told["interfaces"]]}
    except Exception as error:  # noqa: BLE001, whatever an engine or a probe does here, the answer is "not known"
        return {"problem": f"{type(error).__name__}: {error}"[:300]}


def _blocked(events: Sequence[bytes]) -> frozenset[tuple[str, int]]:
    rows = [json.loads(line) for line in events]
    return frozenset((row["host"], row["port"]) for row in rows if row["decision"] == "block")
