"""Decisions to lines of network_event_v1, in canonical JSON; under a flood equal ones are counted, not repeated."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import dataclass
from datetime import UTC, datetime

REPEATS = 50
"""So many equal decisions get a line each; later ones are counted into one line per flush."""
MAX_KEYS = 500
"""So many different decisions are told apart; later ones are counted by their rule alone."""
MAX_LINES = 30_000
"""Beyond it counts are written at the end only: a flood must not fill the disk."""
_LONGEST = 255


@dataclass
class Decision:
    """One connection's fate."""

    decision: str
    rule: str
    host: str | None = None
    port: int | None = None
    transport: str = "other"
    method: str | None = None
    sni: str | None = None
    address: str | None = None
    reason: str = ""
    bytes_up: int = 0
    bytes_down: int = 0
    duration_ms: int = 0


@dataclass
class _Counted:
    decision: Decision
    first: str
    last: str
    count: int


class DecisionLog:
    """Appends lines to a descriptor, from any thread. A line that cannot be written is an OSError for the caller."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._start()

    def _start(self) -> None:
        self._seq = 0
        self._seen: dict[tuple[object, ...], int] = {}
        self._waiting: dict[tuple[object, ...], _Counted] = {}

    def write(self, decision: Decision) -> None:
        """One more decision."""
        with self._lock:
            key = (decision.decision, decision.rule, decision.host, decision.port, decision.method)
            if key not in self._seen and len(self._seen) >= MAX_KEYS:
                decision.host = decision.port = decision.sni = decision.address = decision.method = None
                decision.reason = "one of many; counted by its rule"
                key = (decision.decision, decision.rule, None, None, None)
            self._seen[key] = self._seen.get(key, 0) + 1
            now = timestamp()
            if self._seen[key] <= REPEATS:
                self._line(decision, now)
            elif known := self._waiting.get(key):
                known.decision.bytes_up += decision.bytes_up
                known.decision.bytes_down += decision.bytes_down
                known.last, known.count = now, known.count + 1
            else:
                self._waiting[key] = _Counted(decision, now, now, 1)

    def flush(self) -> None:
        """Writes what was counted, while the log is not too long already."""
        with self._lock:
            if self._seq < MAX_LINES:
                self._flush()

    def end_of_trial(self) -> int:
        """Writes what was counted and starts numbers and counts anew for the next; gives the size of the log."""
        with self._lock:
            self._flush()
            self._start()
            os.fsync(self._descriptor)
            return os.fstat(self._descriptor).st_size

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for item in waiting.values():
            self._line(item.decision, item.first, count=item.count, last_ts=item.last)

    def _line(self, decision: Decision, when: str, **more: object) -> None:
        value: dict[str, object] = {
            "schema_version": "network_event_v1", "source": "network_proxy", "seq": self._seq, "ts": when,
            "decision": decision.decision, "rule": decision.rule, "host": _short(decision.host), "port": decision.port,
            "transport": decision.transport, "sni": _short(decision.sni), "address": decision.address,
            "bytes_up": decision.bytes_up, "bytes_down": decision.bytes_down, "duration_ms": decision.duration_ms,
            **more,
        }  # fmt: skip
        if decision.method is not None:
            value["method"] = _short(decision.method)
        if decision.reason:
            value["reason"] = _short(decision.reason)
        self._seq += 1
        line = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        data = memoryview(line.encode("utf-8", "replace") + b"\n")
        while data:
            data = data[os.write(self._descriptor, data) :]


def timestamp() -> str:
    """Now, in UTC, with microseconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _short(text: str | None) -> str | None:
    """Hostile text, bounded; JSON escapes the rest."""
    return None if text is None else text[:_LONGEST]
