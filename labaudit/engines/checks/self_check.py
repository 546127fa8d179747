"""The self-check list that every engine goes through, in `labaudit doctor` and in the tests.

One sandbox runs `self_probe.py`; each rule below reads what it told and what was observed, and answers ok, degraded
or missing with a sentence and the fix. Unknown is never ok.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from labaudit.engines.checks import self_probe
from labaudit.engines.protocol import Engine, Limits, SandboxLabels, SandboxResult, SandboxSpec
from labaudit.errors import LabauditError

Status = Literal["ok", "degraded", "missing"]
LIMITS = Limits(memory_mb=256, pids=64, out_mb=8, workspace_mb=16)


@dataclass(frozen=True)
class Check:
    """One line of the list. `fix` is empty where nothing is to be done."""

    area: str
    name: str
    status: Status
    detail: str
    fix: str = ""


@dataclass(frozen=True)
class Seen:
    """What the probe told, and the result of its sandbox."""

    told: Mapping[str, Any]
    result: SandboxResult

    def unenforced(self, *names: str) -> str:
        """Why some of these are not in force; empty where all are."""
        return "; ".join(f"{item.what}: {item.why}" for item in self.result.unenforced if item.what in names)


Answer = tuple[Status, str, str]
_SHUT = frozenset({"EPERM", "EACCES", "ENOSYS", "EAFNOSUPPORT"})


def self_check(engine: Engine) -> list[Check]:
    """Runs the list on one engine; an engine that cannot run the probe at all is one `missing` line."""
    area = f"sandbox {engine.name}"
    try:
        seen = _probe(engine)
    except LabauditError as error:
        return [Check(area, "runs a command", "missing", error.what, error.hint)]
    checks = [Check(area, "runs a command", "ok", f"image {engine.resolve_image(None).id[:19]}")]
    return checks + [Check(area, name, *rule(seen)) for name, rule in RULES.items()]


def _probe(engine: Engine) -> Seen:
    source = Path(self_probe.__file__).read_text()
    labels = SandboxLabels("self-check", "probe")
    spec = SandboxSpec(
        engine.resolve_image(None).id, ("python3", "-c", source), labels, limits=LIMITS, timeout_s=60.0, grace_s=1.0
    )
    sandbox = engine.open(spec)
    try:
        sandbox.start()
        result = sandbox.wait()
    finally:
        sandbox.remove()
    try:
        return Seen(json.loads(result.stdout.rendered()), result)
    except ValueError:
        words = result.stderr.rendered().decode(errors="replace").strip()[-300:]
        raise LabauditError(f"the probe ended with {result.exit_code} and said: {words or 'nothing'}") from None


def _user(seen: Seen) -> Answer:
    if seen.told["uid"] == 0:
        return "missing", "the harness runs as root", "the engine must support running as another user"
    return "ok", f"user {seen.told['uid']}", ""


def _privileges(seen: Seen) -> Answer:
    if why := seen.unenforced("capabilities", "no_new_privs"):
        return "missing", why, "the engine ignores cap_drop or no-new-privileges: update it"
    return "ok", "no capabilities, no new privileges", ""


def _system_calls(seen: Seen) -> Answer:
    calls = {**seen.told["calls"], **{f"{k} sockets": v for k, v in seen.told["families"].items()}}
    calls["raw sockets"] = seen.told["raw"]
    # keyctl and ptrace answer with other errors where they get through to the kernel
    through = sorted(name for name, answer in calls.items() if answer not in _SHUT)
    why = seen.unenforced("seccomp")
    if through or why:
        detail = "; ".join(filter(None, (f"get through: {', '.join(through)}" if through else "", why)))
        return "missing", detail, "a kernel with CONFIG_SECCOMP_FILTER and an engine that applies the profile"
    return "ok", f"{len(calls)} tries refused, filter seen", ""


def _file_system(seen: Seen) -> Answer:
    writable = sorted(folder for folder, answer in seen.told["writes"].items() if answer == "allowed")
    if writable or seen.told["engine_sockets"]:
        shown = ", ".join([*writable, *seen.told["engine_sockets"]])
        return "missing", f"open to the harness: {shown}", "the engine must support a read-only root"
    if why := seen.unenforced("read_only_root"):
        return "missing", why, "the engine must support a read-only root"
    shut = sorted(folder for folder, answer in seen.told["surfaces"].items() if answer != "allowed")
    if shut:
        return "missing", f"surfaces that cannot be written: {', '.join(shut)}", "check the runtime folder's owner"
    return "ok", "root read-only, surfaces writable, no engine socket", ""


def _network(seen: Seen) -> Answer:
    others = [name for name in seen.told["interfaces"] if name != "lo"]
    network = seen.result.network
    if others or network.mode_effective != "none":
        seen_there = ", ".join(others) or f"mode {network.mode_effective}"
        return "missing", f"not shut: {seen_there}", "the engine must offer a sandbox without a network"
    status: Status = "ok" if network.bypass_risk == "none" else "degraded"
    return status, f"{network.enforcement}, bypass risk {network.bypass_risk}", "; ".join(network.notes)


def _limits(seen: Seen) -> Answer:
    why = seen.unenforced("memory_mb", "cpus", "pids")
    fix = "run as root, or delegate a control group with memory, pids and cpu to this user"
    return ("degraded", why, fix) if why else ("ok", "memory, CPU and process limits in force", "")


def _quotas(seen: Seen) -> Answer:
    why = seen.unenforced("out_mb", "workspace_mb")
    return ("degraded", why, "run as root: a size-limited tmpfs needs it") if why else ("ok", "/out and /workspace", "")


def _resolvers(seen: Seen) -> Answer:
    why = seen.unenforced("resolvers")
    return ("degraded", why, "") if why else ("ok", "the host's resolvers do not show inside", "")


def _witnesses(seen: Seen) -> Answer:
    found = seen.result.observed
    missing = {"init", "host", "engine"} - set(found.witnesses)
    if missing or found.disagreements:
        gaps = [f"no word from {', '.join(sorted(missing))}"] if missing else []
        return "degraded", "; ".join([*gaps, *found.absent, *found.disagreements]), "run on the engine's own machine"
    return "ok", "init, host and engine agree", ""


RULES: dict[str, Callable[[Seen], Answer]] = {
    "ordinary user": _user,
    "no privileges": _privileges,
    "system calls": _system_calls,
    "file system": _file_system,
    "no network": _network,
    "limits": _limits,
    "quotas": _quotas,
    "resolvers": _resolvers,
    "observation": _witnesses,
}
