"""Actions to the control file that a harness reads at each step's end, and to a log that it cannot reach.

The file is replaced whole, so a harness never reads half of one; the sha256 of its bytes is the control_version that a
control_ack must name. The file lies where the harness can write, so what it says is never read back as evidence: the
log beside the trial's other files is.
"""

from __future__ import annotations

import os
import secrets
import threading
from contextlib import suppress
from pathlib import Path
from typing import get_args

from labaudit.core.clock import Clock, SystemClock, rfc3339
from labaudit.errors import BadInput
from labaudit.evidence.control_history import control_bytes, control_write, history_line
from labaudit.evidence.hook_rules import ControlWrite
from labaudit.records.fields import ControlAction
from labaudit.store import atomic

ACTIONS: tuple[str, ...] = get_args(ControlAction)


class ControlPlane:
    """The one writer of a trial's control file; safe to call from threads.

    `root` is the state folder on the host; between it and the file no link is followed.
    """

    def __init__(self, path: Path, log: Path, clock: Clock | None = None, *, root: Path | None = None) -> None:
        self.path = path
        self.log = log
        self._root = root or path.parent
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._writes: list[ControlWrite] = []
        self.problems: list[str] = []
        """Why a later write did not reach the file: the harness filled or damaged its own state folder."""

    def write(self, action: str, label: str | None = None, *, by: str = "runner") -> str:
        """Asks for an action from the next step's end on; returns the control_version.

        The first write must succeed. A later one that the harness obstructs is noted in `problems`: it must not be
        able to turn its own trial into one that the infrastructure lost.
        """
        if action not in ACTIONS:
            raise BadInput(f"{action!r} is no control action", hint=f"one of {', '.join(ACTIONS)}")
        with self._lock:
            number = len(self._writes)
            entry = control_write(number, action, label)
            # First the log: a harness must not be able to acknowledge what the log does not know yet.
            atomic.append_line(self.log, history_line(entry, ts=rfc3339(self._clock.now()), by=by))
            self._writes.append(entry)
            try:
                _replace(self._root, self.path.relative_to(self._root), control_bytes(number, action, label))
            except OSError as error:
                if number == 0:
                    raise atomic.explain(error, self.path) from error
                self.problems.append(f"{action} could not be written: {error.strerror or error}")
            return entry.control_version

    def read(self) -> tuple[str, str, str | None]:
        """What was asked for last: (control_version, action, label)."""
        writes = self.history
        if not writes:
            raise BadInput("nothing was written to the control file yet", where=str(self.path))
        return writes[-1].control_version, writes[-1].action, writes[-1].label

    def label_of(self, control_version: str) -> str | None:
        """The label that a version carries; None for a version without one, and for one that nobody wrote."""
        found = (entry.label for entry in self.history if entry.control_version == control_version)
        return next(found, None)

    @property
    def history(self) -> tuple[ControlWrite, ...]:
        """All that was written, in order."""
        with self._lock:
            return tuple(self._writes)


def _replace(root: Path, relative: Path, data: bytes) -> None:
    """Puts `data` at `relative` below `root` in one step, in a folder that an untrusted harness can write to.

    Folders are entered without following links, the temporary file is new, and the rename replaces a planted link
    instead of following it.
    """
    folder = _enter(root, relative.parts[:-1])
    temporary = f".lab_control-{secrets.token_hex(8)}"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(temporary, flags, 0o644, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                # 0644 also under a strict umask: the harness runs as another user and must be able to read it.
                os.fchmod(stream.fileno(), 0o644)
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.rename(temporary, relative.name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            os.unlink(temporary, dir_fd=folder)
            raise
    finally:
        os.close(folder)


def _enter(root: Path, parts: tuple[str, ...]) -> int:
    """The folder below `root`, made where it is missing, as a descriptor."""
    root.mkdir(parents=True, exist_ok=True)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            with suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=folder)
            deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = deeper
    except OSError:
        os.close(folder)
        raise
    return folder
