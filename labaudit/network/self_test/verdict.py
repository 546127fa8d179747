"""What both sides saw to a verdict and a document. Pure.

A token at a canary is a leak, whatever the inside said. Silence counts as blocked only if the probe really ran and the
canary was alive before and after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Phase = Literal["control_before", "restricted", "control_after"]
Seen = Literal["allow", "block", "error", "unknown"]
Result = Literal["pass", "fail", "inconclusive"]

_BLOCKED = frozenset({"refused", "unreachable", "timeout", "denied"})


@dataclass(frozen=True)
class Try:
    """One attempt: from where, to what, with which token, and what should come of it."""

    id: int
    phase: Phase
    kind: Literal["tcp", "udp", "abstract", "proxied"]
    canary: str
    address: str
    port: int
    token: str
    expected: Literal["allow", "block"]
    host: str = ""
    """For `proxied`: the name that the proxy is asked for."""
    place: str = ""
    """What the document says in place of the address: a published run should not tell a machine's addresses."""

    @property
    def target(self) -> str:
        """How the case is named on a page."""
        place = f"{self.host}:{self.port} through the proxy" if self.kind == "proxied" else self._direct()
        who = "an unrestricted place" if self.phase != "restricted" else "the sandbox"
        return f"{self.canary}: {place}, from {who} ({self.phase})"

    def _direct(self) -> str:
        return self.place if self.kind == "abstract" else f"{self.kind} {self.place}:{self.port}"


@dataclass(frozen=True)
class Inside:
    """What a probe told: None where it told nothing."""

    result: str | None
    detail: str = ""


@dataclass(frozen=True)
class Case:
    """One try with what was seen of it."""

    tried: Try
    inside: Inside
    arrived: bool
    observed: Seen
    why: str

    @property
    def ok(self) -> bool:
        return self.observed == self.tried.expected


@dataclass(frozen=True)
class Verdict:
    """The result, its reasons, and every case."""

    result: Result
    reasons: tuple[str, ...]
    cases: tuple[Case, ...]


def judge(
    tries: Sequence[Try],
    inside: Mapping[int, Inside],
    arrived: frozenset[str],
    proxy_blocks: frozenset[tuple[str, int]] = frozenset(),
) -> Verdict:
    """`arrived` are tokens that canaries noted; `proxy_blocks` are (host, port) that the proxy logged as blocked."""
    cases = tuple(
        _case(tried, inside.get(tried.id, Inside(None)), tried.token in arrived, proxy_blocks) for tried in tries
    )
    leaks = [case for case in cases if case.tried.expected == "block" and case.observed == "allow"]
    if leaks:
        return Verdict("fail", tuple(f"{case.tried.target}: {case.why}" for case in leaks), cases)
    doubts = [f"{case.tried.target}: {case.why}" for case in cases if not case.ok]
    kinds = {(case.tried.phase == "restricted", case.tried.expected) for case in cases}
    if (True, "block") not in kinds:
        doubts.append("nothing was tried that must be blocked")
    doubts += [f"{name} has no control" for name in sorted(_without_control(tries))]
    return Verdict("inconclusive" if doubts else "pass", tuple(doubts), cases)


def _without_control(tries: Sequence[Try]) -> set[str]:
    """Canaries and transports that were attacked but never shown to be alive on both ends of the attack."""
    missing = set()
    for tried in tries:
        if tried.phase == "restricted" and tried.expected == "block" and tried.kind != "proxied":
            for phase in ("control_before", "control_after"):
                if not any(
                    (other.phase, other.canary, other.kind) == (phase, tried.canary, tried.kind) for other in tries
                ):
                    missing.add(f"{tried.canary} by {tried.kind}")
    return missing


def _case(tried: Try, inside: Inside, arrived: bool, proxy_blocks: frozenset[tuple[str, int]]) -> Case:
    observed, why = _observe(tried, inside, arrived, proxy_blocks)
    return Case(tried, inside, arrived, observed, why)


def _observe(
    tried: Try, inside: Inside, arrived: bool, proxy_blocks: frozenset[tuple[str, int]]
) -> tuple[Seen, str]:
    reached = inside.result == "reached"
    if arrived and reached:
        return "allow", "the token arrived and the answer came back"
    if arrived and tried.kind == "udp":
        return "allow", "the token arrived"
    if arrived:
        # one way is enough to carry data out; it is not enough for a path that should work
        seen: Seen = "allow" if tried.expected == "block" else "error"
        return seen, f"the token arrived, though the inside says {inside.result or 'nothing'}"
    if reached:
        seen = "allow" if tried.expected == "block" else "error"
        return seen, "the inside got its token back, though no canary noted it"
    if inside.result is None:
        return "unknown", "the probe told nothing"
    if inside.result not in _BLOCKED:
        return "error", f"the inside says {inside.result} {inside.detail}".strip()
    if tried.kind == "proxied" and tried.expected == "block":
        if inside.result != "denied":
            return "error", f"the proxy should refuse and say so; the inside says {inside.result}"
        if (tried.host, tried.port) not in proxy_blocks:
            return "error", "the inside was refused, but the proxy's log does not say so"
        return "block", f"the proxy refused ({inside.detail}) and logged it"
    return "block", f"no token arrived; the inside says {inside.result} {inside.detail}".strip()
