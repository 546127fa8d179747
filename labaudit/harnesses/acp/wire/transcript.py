"""Every line in either direction to one canonical JSON line, written before anything is read from it.

    {"dir":"in"|"out","line":"...","seq":0,"ts":"..."}       a line as it was (secrets withheld: "redacted":true)
    {"base64":"...","dir":"in",...}                          a line that is no UTF-8
    {"cut":true,"dir":"in","line":"<head>","sha256":"<of all>","size":52428800,...}
    {"about":7,"detail":"...","dir":"note","kind":"unknown_session",...}      what we made of line 7

The file is bounded; when it is full that is its last entry, and the client ends the conversation. So it does when the
disk takes no more: what is not on record is not evidence, and `check` says so to whoever would seal it.
"""

from __future__ import annotations

import base64
import errno
import os
import threading
from pathlib import Path

from labaudit.core.canonical import canonical_bytes
from labaudit.core.clock import Clock, SystemClock, rfc3339
from labaudit.core.redaction import Redactor
from labaudit.errors import LabauditError
from labaudit.harnesses.acp.wire.framing import KEPT_OF_A_LONG_LINE, MAX_LINE, Frame
from labaudit.harnesses.acp.wire.text import fit
from labaudit.store import atomic

MAX_TRANSCRIPT = 64 << 20
MAX_NOTES = 10_000
FULL = "transcript_full"


class Transcript:
    """The writer of one `acp_transcript.jsonl`; with no path it counts and keeps nothing."""

    def __init__(
        self,
        path: Path | None,
        *,
        clock: Clock | None = None,
        redactor: Redactor | None = None,
        max_bytes: int = MAX_TRANSCRIPT,
    ) -> None:
        self.path = path
        self._clock = clock or SystemClock()
        self._redactor = redactor or Redactor()
        self._max = max_bytes
        self._lock = threading.Lock()
        self._written = 0
        self._notes = 0
        self.seq = 0
        self.full = False
        self.failure: LabauditError | None = None
        """Why lines are missing from the file; None while every line is in it."""
        self.counts = {"in": 0, "out": 0, "note": 0}
        self._file = None
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._file = path.open("ab", buffering=0)
            except OSError as error:
                raise atomic.explain(error, path) from error

    def received(self, frame: Frame) -> int:
        """Keeps a line from the agent; returns its seq."""
        entry: dict[str, object] = {"dir": "in"}
        if frame.cut:
            entry |= {"cut": True, "size": frame.size, "sha256": frame.sha256}
        if not frame.ended:
            entry["unended"] = True
        return self._line(entry, frame.data)

    def sent(self, line: bytes) -> int:
        """Keeps a line of ours; returns its seq."""
        data = line.removesuffix(b"\n")
        entry: dict[str, object] = {"dir": "out"}
        if len(data) > MAX_LINE:
            entry |= {"cut": True, "size": len(data)}
            data = data[:KEPT_OF_A_LONG_LINE]
        return self._line(entry, data)

    def note(self, kind: str, detail: str = "", about: int | None = None) -> None:
        """Keeps what we made of a line. Bounded apart from the lines: a flood of defects is a flood of notes."""
        with self._lock:
            self._notes += 1
            if self._notes > MAX_NOTES:
                return
            entry: dict[str, object] = {"dir": "note", "kind": kind, "detail": self._redactor.text(fit(detail, 500))}
            if about is not None:
                entry["about"] = about
            self._append(entry)

    def flush(self) -> None:
        """On the disk, not only handed over."""
        with self._lock:
            if self._file is not None and not self._file.closed:
                os.fsync(self._file.fileno())

    def close(self) -> None:
        """Ends the file; later lines are dropped and counted."""
        with self._lock:
            if self._file is not None and not self._file.closed:
                try:
                    os.fsync(self._file.fileno())
                except OSError as error:
                    self._lose(error)
                self._file.close()

    def check(self) -> None:
        """Raises what kept lines out of the file, if anything did."""
        if self.failure is not None:
            raise self.failure

    def _line(self, entry: dict[str, object], data: bytes) -> int:
        redacted = self._redactor.apply(data)
        if redacted.applied:
            entry["redacted"] = True
        try:
            entry["line"] = redacted.data.decode("utf-8")
        except UnicodeDecodeError:
            entry["base64"] = base64.b64encode(redacted.data).decode("ascii")
        with self._lock:
            return self._append(entry)

    def _append(self, entry: dict[str, object]) -> int:
        seq = self.seq
        self.seq += 1
        self.counts[str(entry["dir"])] += 1
        if self._file is None or self._file.closed or self.full or self.failure is not None:
            return seq
        line = self._render(entry, seq)
        if self._written + len(line) > self._max:
            self.full = True
            line = self._render({"dir": "note", "kind": FULL, "detail": f"{self._max} bytes are the limit"}, seq)
        try:
            if self._file.write(line) != len(line):
                # A disk that fills up in the middle of a line takes what it can and says nothing.
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self._lose(error)
        self._written += len(line)
        return seq

    def _lose(self, error: OSError) -> None:
        self.failure = self.failure or atomic.explain(error, self.path or Path())

    def _render(self, entry: dict[str, object], seq: int) -> bytes:
        return canonical_bytes({**entry, "seq": seq, "ts": rfc3339(self._clock.now())}) + b"\n"
