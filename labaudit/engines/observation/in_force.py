"""What was asked for against what was seen: the list of limits and options that are not in force. Pure.

An engine that accepts an option and ignores it shows up here, because only observation counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from labaudit.engines.observed import NotObserved, Observed, ObservedMount
from labaudit.engines.result import Unenforced
from labaudit.engines.spec import SandboxSpec

_MB = 1 << 20
_SLACK = 1.05
"""Kernels round limits to pages and periods."""


def not_in_force(spec: SandboxSpec, observed: Observed) -> tuple[Unenforced, ...]:
    """Every limit and option of `spec` that observation does not confirm, with the reason."""
    checks = (_user, _privileges, _file_system, _limits, _quotas, _resolvers)
    return tuple(finding for check in checks for finding in check(spec, observed))


def _user(_: SandboxSpec, seen: Observed) -> Iterator[Unenforced]:
    if isinstance(seen.uid, NotObserved):
        yield Unenforced("non_root_user", seen.uid.reason)
    elif seen.uid == 0:
        yield Unenforced("non_root_user", "the harness runs as root")


def _privileges(_: SandboxSpec, seen: Observed) -> Iterator[Unenforced]:
    if isinstance(seen.capabilities, NotObserved):
        yield Unenforced("capabilities", seen.capabilities.reason)
    elif seen.capabilities:
        yield Unenforced("capabilities", "still there: " + ", ".join(sorted(seen.capabilities)))
    if seen.no_new_privs is not True:
        yield Unenforced("no_new_privs", _why(seen.no_new_privs, "it is not set"))
    if seen.seccomp_mode != 2:
        yield Unenforced("seccomp", _why(seen.seccomp_mode, "no filter is active"))


def _file_system(_: SandboxSpec, seen: Observed) -> Iterator[Unenforced]:
    if seen.root_read_only is not True:
        yield Unenforced("read_only_root", _why(seen.root_read_only, "the root file system is writable"))


def _limits(spec: SandboxSpec, seen: Observed) -> Iterator[Unenforced]:
    limits = seen.limits
    if reason := _over(limits.memory_bytes, spec.limits.memory_mb * _MB):
        yield Unenforced("memory_mb", reason)
    if reason := _over(limits.cpus, spec.limits.cpus):
        yield Unenforced("cpus", reason)
    if (reason := _over(limits.pids, spec.limits.pids)) and _over(limits.processes_rlimit, spec.limits.pids):
        yield Unenforced("pids", reason)


def _quotas(spec: SandboxSpec, seen: Observed) -> Iterator[Unenforced]:
    wanted = {"/out": ("out_mb", spec.limits.out_mb), "/workspace": ("workspace_mb", spec.limits.workspace_mb)}
    replaced = {mount.target for mount in spec.read_only}
    for path, (name, megabytes) in wanted.items():
        mount = mount_at(seen, path)
        if path in replaced:
            continue
        if isinstance(mount, NotObserved):
            yield Unenforced(name, mount.reason)
        elif mount.size_bytes is None or mount.size_bytes > megabytes * _MB * _SLACK:
            yield Unenforced(name, f"{path} is {mount.fstype} without a size limit of its own")


def _resolvers(spec: SandboxSpec, seen: Observed) -> Iterator[Unenforced]:
    if spec.network.mode == "full" or isinstance(seen.resolvers, NotObserved):
        return
    foreign = [resolver for resolver in seen.resolvers if not resolver.startswith("127.")]
    if foreign:
        yield Unenforced("resolvers", "the host's resolvers show inside: " + ", ".join(foreign))


def mount_at(seen: Observed, path: str) -> ObservedMount | NotObserved:
    """The mount that is visible at `path`."""
    if isinstance(seen.mounts, NotObserved):
        return seen.mounts
    found = [mount for mount in seen.mounts if mount.path == path]
    return found[-1] if found else NotObserved(f"nothing is mounted at {path}")


def _over(value: float | NotObserved | None, wanted: float) -> str:
    if isinstance(value, NotObserved):
        return value.reason
    if value is None:
        return "no limit is set"
    return f"the limit is {value:g}, asked for was {wanted:g}" if value > wanted * _SLACK else ""


def _why(value: object, otherwise: str) -> str:
    return value.reason if isinstance(value, NotObserved) else otherwise
