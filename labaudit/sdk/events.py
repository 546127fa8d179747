"""Hook events to lines of harness_events.jsonl: numbered, timed, each written whole before the harness goes on."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from .canonical import canonical_json
from .files import timestamp


class EventWriter:
    """The one writer of a trial's hook stream; safe to call from threads."""

    def __init__(self, path: str, ids: dict[str, Any]) -> None:
        self.path = path
        self._ids = dict(ids)
        self._seq = 0
        self._lock = threading.Lock()
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        # O_EXCL: a second session in one trial would restart seq and make the whole stream invalid.
        self._file = os.open(path, flags, 0o644)

    def write(self, event_type: str, **fields: Any) -> int:
        """Appends one event and returns its seq; fields that are None are left out."""
        with self._lock:
            seq = self._seq
            event = {"event_type": event_type, "ts": timestamp(), "seq": seq, "ids": self._ids}
            event.update((name, value) for name, value in fields.items() if value is not None)
            line = canonical_json(event) + b"\n"
            written = 0
            while written < len(line):
                written += os.write(self._file, line[written:])
            self._seq = seq + 1
            return seq

    def close(self) -> None:
        """Makes the stream durable; further events are an error."""
        with self._lock:
            if self._file >= 0:
                os.fsync(self._file)
                os.close(self._file)
                self._file = -1
