"""The trial's own init: a shell script that reads what is in force, reports it, and becomes the harness.

The report is the first thing on stderr, framed, before the harness exists; so the harness cannot forge or delay it,
and no extra exec is needed. Only shell builtins are used: an image needs nothing but /bin/sh. The output is collected
in a variable first, so that the report is a single write. Then the init waits for one line on stdin, `GO`, which the
engine writes once it has looked from outside too: however short a trial is, both witnesses saw it.
"""

from __future__ import annotations

GO = b"go\n"
BEGIN = b"\x1elabaudit-init 1\n"
END = b"\x1eend\n"
MAX_REPORT = 1 << 20

FILES = (
    "/proc/self/status",
    "/proc/self/mountinfo",
    "/proc/self/cgroup",
    "/proc/net/dev",
    "/proc/net/route",
    "/proc/net/ipv6_route",
    "/etc/resolv.conf",
    "/proc/sys/kernel/hostname",
    # control groups: version 2, then version 1
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/pids.max",
    "/sys/fs/cgroup/cpu.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/sys/fs/cgroup/pids/pids.max",
    "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
    "/sys/fs/cgroup/cpu/cpu.cfs_period_us",
    "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us",
    "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us",
)

# dash knows `ulimit -p`, bash `ulimit -u`; a limit that cannot be set shows in the report as not set.
_SCRIPT = r"""
{limit}R=
add() {{ R="$R$1
"; }}
for f in {files}; do
  if [ -r "$f" ]; then
    add "== $f"
    while IFS= read -r l || [ -n "$l" ]; do add "$l"; l=; done <"$f"
  fi
done
add "== ulimit"
add "nproc $(ulimit -p 2>/dev/null || ulimit -u 2>/dev/null)"
add "fsize $(ulimit -f 2>/dev/null)"
if command -v "$1" >/dev/null 2>&1; then add "== command found"; else add "== command missing"; fi
printf '\036labaudit-init 1\n%s\036end\n' "$R" >&2
command -v "$1" >/dev/null 2>&1 || exit 127
IFS= read -r l || exit 125
unset R l f
unset -f add
{become}"""

_EXEC = 'exec "$@"\n'
# The kernel shields a first process from signals that it does not handle, its own included; so the harness is the
# second one. A shell gives background commands no stdin unless it is handed over.
_SUPERVISE = r"""
trap 'kill -TERM $c 2>/dev/null' TERM
exec 3<&0
"$@" <&3 3<&- &
c=$!
exec 3<&- </dev/null
while :; do
  wait $c; s=$?
  [ $s -gt 128 ] && kill -0 $c 2>/dev/null || break
done
exit $s
"""


def init_command(
    command: tuple[str, ...], *, processes: int | None = None, supervise: bool = False
) -> tuple[str, ...]:
    """The argv that reports and then becomes `command`, or stays as its parent where it is the sandbox's first process.

    `processes` also sets RLIMIT_NPROC inside.
    """
    limit = f"ulimit -p {processes} 2>/dev/null || ulimit -u {processes} 2>/dev/null\n" if processes else ""
    script = _SCRIPT.format(limit=limit, files=" ".join(FILES), become=_SUPERVISE if supervise else _EXEC)
    return ("/bin/sh", "-c", script, "labaudit-init", *command)


def split_report(data: bytes) -> tuple[bytes | None, bytes, bool]:
    """(report, what follows it, whether more bytes are needed) of the first bytes on stderr."""
    if not data.startswith(BEGIN[: len(data)]):
        return None, data, False
    end = data.find(END)
    if end >= 0:
        return data[len(BEGIN) : end], data[end + len(END) :], False
    if len(data) > MAX_REPORT:
        return None, data, False
    return None, b"", True
