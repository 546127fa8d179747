"""Finding and freezing the processes inside a pid namespace from outside."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path


def main_process(init: int) -> int | None:
    """The harness's main process: number 2 in the namespace whose number 1 is `init`."""
    for pid in _children(init):
        with suppress(OSError, ValueError, IndexError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("NSpid:") and line.split()[-1] == "2":
                    return pid
    return None


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [other for other in _all() if _parent(other) == pid]


def _parent(pid: int) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        return int(text[text.rindex(")") + 2 :].split()[1])
    return None


def _all() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def in_namespace(init: int) -> list[int]:
    """All processes of the namespace except its init."""
    try:
        wanted = Path(f"/proc/{init}/ns/pid").stat().st_ino
    except OSError:
        return []
    found = []
    for pid in _all():
        with suppress(OSError):
            if pid != init and Path(f"/proc/{pid}/ns/pid").stat().st_ino == wanted:
                found.append(pid)
    return found


def signal_all(init: int, number: int) -> None:
    """Signals every process of the namespace; stopping repeats until no new one appears."""
    done: set[int] = set()
    for _ in range(50):
        fresh = [pid for pid in in_namespace(init) if pid not in done]
        if not fresh:
            return
        for pid in fresh:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
            done.add(pid)
        if number != signal.SIGSTOP:
            return
