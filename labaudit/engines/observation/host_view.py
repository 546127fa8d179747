"""The second witness: the kernel's view of a sandboxed process from outside, in the init report's own format.

The image's /bin/sh makes the first report, so a hostile image could forge it; /proc on the host it cannot touch.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_FILES = {
    "status": "/proc/self/status",
    "mountinfo": "/proc/self/mountinfo",
    "net/dev": "/proc/net/dev",
    "net/route": "/proc/net/route",
    "net/ipv6_route": "/proc/net/ipv6_route",
}
NAMESPACES = ("net", "pid", "mnt", "ipc", "uts", "user", "cgroup")


def host_report(pid: int) -> bytes | None:
    """What /proc/<pid> says, or None where it cannot be read (gone, or not ours to look at)."""
    parts = []
    for name, title in _FILES.items():
        with suppress(OSError):
            parts.append(b"== " + title.encode() + b"\n" + Path(f"/proc/{pid}/{name}").read_bytes())
    if not parts or not parts[0].startswith(b"== /proc/self/status"):
        return None
    return b"".join(parts)


def namespaces_of(pid: int) -> dict[str, str]:
    """Namespace kinds to their ids, for those that can be read."""
    found = {}
    for kind in NAMESPACES:
        with suppress(OSError):
            found[kind] = str(Path(f"/proc/{pid}/ns/{kind}").readlink()).partition("[")[2].rstrip("]")
    return found
