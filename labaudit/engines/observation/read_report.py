"""From the init's raw report to `Observed`: pure parsing of /proc, no judgement.

Every section that is missing or does not parse becomes a `NotObserved` with its reason.
"""

from __future__ import annotations

import dataclasses
import re

from labaudit.engines.observed import NotObserved, Observed, ObservedLimits, ObservedMount, nothing_observed


def _names(text: str) -> list[str]:
    return text.split()


CAPABILITIES = _names(
    "chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap linux_immutable net_bind_service "
    "net_broadcast net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio sys_chroot sys_ptrace sys_pacct sys_admin "
    "sys_boot sys_nice sys_resource sys_time sys_tty_config mknod lease audit_write audit_control setfcap mac_override "
    "mac_admin syslog wake_alarm block_suspend audit_read perfmon bpf checkpoint_restore"
)
_UNLIMITED_V1 = 1 << 60
_CAP_LINES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


def sections_of(report: bytes) -> dict[str, list[str]]:
    """The report's files, by path, as lines."""
    sections: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in report.decode("utf-8", "backslashreplace").split("\n"):
        if line.startswith("== "):
            current = sections.setdefault(line[3:], [])
        elif current is not None:
            current.append(line)
    return sections


def command_was_missing(report: bytes | None) -> bool:
    """True if the init looked for the command and it was not there."""
    return report is not None and b"\n== command missing\n" in b"\n" + report


def read_report(report: bytes | None, why_absent: str = "the init made no report") -> Observed:
    """What the trial's own init saw."""
    if report is None:
        return nothing_observed(why_absent)
    sections = sections_of(report)
    status = _status(sections.get("/proc/self/status", []))
    mounts = _mounts(sections.get("/proc/self/mountinfo", []))
    return Observed(
        uid=_first_number(status, "Uid"),
        gid=_first_number(status, "Gid"),
        capabilities=_capabilities(status),
        no_new_privs=_flag(status, "NoNewPrivs"),
        seccomp_mode=_first_number(status, "Seccomp"),
        root_read_only=_root_read_only(mounts),
        mounts=mounts,
        interfaces=_interfaces(sections.get("/proc/net/dev")),
        routes=_routes(sections),
        resolvers=_resolvers(sections.get("/etc/resolv.conf")),
        namespaces=NotObserved("namespaces are read from outside"),
        limits=_limits(sections),
        witnesses=("init",),
    )


def without_namespaces(observed: Observed, reason: str) -> Observed:
    """The same facts with the namespaces marked as not observed."""
    return dataclasses.replace(observed, namespaces=NotObserved(reason))


def _status(lines: list[str]) -> dict[str, str]:
    return {key: value.strip() for key, colon, value in (line.partition(":") for line in lines) if colon}


def _first_number(status: dict[str, str], key: str) -> int | NotObserved:
    text = status.get(key, "").split()
    return int(text[0]) if text and text[0].isdigit() else NotObserved(f"no {key} line in /proc/self/status")


def _flag(status: dict[str, str], key: str) -> bool | NotObserved:
    number = _first_number(status, key)
    return number if isinstance(number, NotObserved) else number == 1


def _capabilities(status: dict[str, str]) -> frozenset[str] | NotObserved:
    bits = 0
    for name in _CAP_LINES:
        try:
            bits |= int(status[name], 16)
        except (KeyError, ValueError):
            return NotObserved(f"no {name} line in /proc/self/status")
    names = {CAPABILITIES[i] if i < len(CAPABILITIES) else f"cap_{i}" for i in range(64) if bits >> i & 1}
    return frozenset(names)


def _mounts(lines: list[str]) -> tuple[ObservedMount, ...] | NotObserved:
    found = []
    for line in lines:
        left, dash, right = line.partition(" - ")
        fields, tail = left.split(" "), right.split(" ")
        if not dash or len(fields) < 6 or len(tail) < 3:
            continue
        options = tuple(fields[5].split(","))
        writable = "rw" in options and "ro" not in tail[2].split(",")
        size, inodes = _tmpfs_bounds(tail[2])
        found.append(ObservedMount(_unescape(fields[4]), tail[0], writable, options, size, inodes))
    return tuple(found) if found else NotObserved("no mount table in the report")


def _tmpfs_bounds(options: str) -> tuple[int | None, int | None]:
    size = re.search(r"\bsize=(\d+)([kmg]?)", options)
    inodes = re.search(r"\bnr_inodes=(\d+)([kmg]?)", options)
    factor = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
    return (
        int(size[1]) * factor[size[2]] if size else None,
        int(inodes[1]) * factor[inodes[2]] if inodes else None,
    )


def _unescape(path: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), path)


def _root_read_only(mounts: tuple[ObservedMount, ...] | NotObserved) -> bool | NotObserved:
    if isinstance(mounts, NotObserved):
        return mounts
    roots = [mount for mount in mounts if mount.path == "/"]
    return not roots[-1].writable if roots else NotObserved("no root in the mount table")


def _interfaces(lines: list[str] | None) -> tuple[str, ...] | NotObserved:
    if not lines:
        return NotObserved("no /proc/net/dev in the report")
    names = [line.partition(":")[0].strip() for line in lines if ":" in line]
    return tuple(sorted(name for name in names if name != "lo"))


def _routes(sections: dict[str, list[str]]) -> tuple[str, ...] | NotObserved:
    if "/proc/net/route" not in sections:
        return NotObserved("no /proc/net/route in the report")
    found = []
    for line in sections["/proc/net/route"][1:]:
        fields = line.split()
        if len(fields) > 2:
            found.append(f"ipv4 {fields[0]} {fields[1]} via {fields[2]}")
    for line in sections.get("/proc/net/ipv6_route", []):
        fields = line.split()
        if len(fields) == 10 and fields[9] != "lo":
            found.append(f"ipv6 {fields[9]} {fields[0]}/{int(fields[1], 16)}")
    return tuple(found)


def _resolvers(lines: list[str] | None) -> tuple[str, ...] | NotObserved:
    if lines is None:
        return NotObserved("no /etc/resolv.conf in the sandbox")
    return tuple(line.split()[1] for line in lines if line.startswith("nameserver") and len(line.split()) > 1)


def _limits(sections: dict[str, list[str]]) -> ObservedLimits:
    ulimits = dict(line.split(" ", 1) for line in sections.get("ulimit", []) if " " in line)
    return ObservedLimits(
        memory_bytes=_bound(sections, "memory.max", "memory/memory.limit_in_bytes"),
        cpus=_cpus(sections),
        pids=_bound(sections, "pids.max", "pids/pids.max"),
        processes_rlimit=_ulimit(ulimits.get("nproc"), 1),
        file_size_rlimit=_ulimit(ulimits.get("fsize"), 512),
    )


def _bound(sections: dict[str, list[str]], *names: str) -> int | NotObserved | None:
    for name in names:
        text = _only(sections, name)
        if text == "max":
            return None
        if text.isdigit():
            return int(text) if int(text) < _UNLIMITED_V1 else None
    return NotObserved(f"no {names[0]} of a control group in the report")


def _cpus(sections: dict[str, list[str]]) -> float | NotObserved | None:
    both = _only(sections, "cpu.max").split()
    if len(both) == 2:
        return None if both[0] == "max" else int(both[0]) / int(both[1])
    for folder in ("cpu", "cpu,cpuacct"):
        quota, period = _only(sections, f"{folder}/cpu.cfs_quota_us"), _only(sections, f"{folder}/cpu.cfs_period_us")
        if quota.lstrip("-").isdigit() and period.isdigit():
            return None if int(quota) < 0 else int(quota) / int(period)
    return NotObserved("no cpu.max of a control group in the report")


def _only(sections: dict[str, list[str]], name: str) -> str:
    lines = sections.get(f"/sys/fs/cgroup/{name}", [])
    return lines[0].strip() if lines else ""


def _ulimit(text: str | None, unit: int) -> int | NotObserved | None:
    if text == "unlimited":
        return None
    return int(text) * unit if text and text.isdigit() else NotObserved("the shell could not tell this limit")
