"""Which runner owns a container, a folder or a cgroup, and whether that runner still lives.

A process id alone is reused; with the kernel's start time and the boot it names one process for ever. Leftovers of a
runner on another machine are never touched.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from labaudit.engines.spec import SandboxLabels

PREFIX = "org.labaudit."
OWNER = PREFIX + "owner"


@dataclass(frozen=True)
class Owner:
    """One runner process: machine, boot, pid and start time."""

    machine: str
    boot: str
    pid: int
    started: int

    def __str__(self) -> str:
        return f"{self.machine}.{self.boot}.{self.pid}.{self.started}"

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """The owner that a label names, or None where it is no label of ours."""
        parts = text.split(".")
        if len(parts) != 4 or not (parts[2].isdigit() and parts[3].isdigit()):
            return None
        return cls(parts[0], parts[1], int(parts[2]), int(parts[3]))

    def is_dead(self) -> bool:
        """True only if this machine can tell that the runner is gone."""
        here = this_process()
        if self.machine != here.machine:
            return False
        return self.boot != here.boot or start_time(self.pid) != self.started


def this_process() -> Owner:
    """The runner that is executing this line (a forked worker is an owner of its own)."""
    pid = os.getpid()
    return Owner(_machine(), _boot(), pid, start_time(pid) or 0)


def start_time(pid: int) -> int | None:
    """The kernel's start time of a process in clock ticks, None where there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])


def labels_of(labels: SandboxLabels, role: str) -> dict[str, str]:
    """The labels that every container of a trial carries."""
    return {
        PREFIX + "run": labels.run_id,
        PREFIX + "trial": labels.trial_id,
        PREFIX + "attempt": str(labels.attempt),
        PREFIX + "role": role,
        OWNER: str(this_process()),
    }


@cache
def _machine() -> str:
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id", "/proc/sys/kernel/hostname"):
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text:
            return hashlib.sha256(text.encode()).hexdigest()[:12]
    return "unknown"


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
    except OSError:
        return "unknown"
