"""Calls that leave the harness to a chained record of them, and such a record back to the answers of a replay.

One line per boundary: what was asked, what came back, and the hash of the line with the hash before it inside. The
last line carries the count, so that a record that was cut off shows.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from .canonical import canonical_json, digest_of
from .errors import ReplayDivergence, SdkError

DOMAIN = "labaudit/boundaries/v1"
KINDS = ("model", "tool", "value")


class BoundaryWriter:
    """The record of one trial. Not safe for threads by itself; the session holds its lock."""

    def __init__(self, path: str, ids: dict[str, Any]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        self._file = os.open(path, flags, 0o644)
        self._prev = hashlib.sha256(canonical_json([DOMAIN, ids["run_id"], ids["trial_id"]])).hexdigest()
        self.count = 0

    def write(self, kind: str, name: str, call_id: str, step_index: int | None, request: Any, result: Any) -> None:
        """Appends one boundary; `result` is {"response": ...} or {"error": {...}}."""
        line = {
            "boundary_index": self.count,
            "kind": kind,
            "name": name,
            "call_id": call_id,
            "request": request,
            "request_digest": digest_of(request),
        }
        line.update(result)
        if step_index is not None:
            line["step_index"] = step_index
        self._append(line)
        self.count += 1

    def close(self) -> None:
        """Ends the record; without this it counts as cut off."""
        if self._file >= 0:
            self._append({"kind": "end", "count": self.count})
            os.fsync(self._file)
            os.close(self._file)
            self._file = -1

    def _append(self, line: dict[str, Any]) -> None:
        line["prev"] = self._prev
        self._prev = hashlib.sha256(canonical_json(line)).hexdigest()
        line["self"] = self._prev
        data = canonical_json(line) + b"\n"
        written = 0
        while written < len(data):
            written += os.write(self._file, data[written:])


class BoundaryReplay:
    """Answers from a record, in order; whatever does not fit it ends the replay."""

    def __init__(self, path: str, until: int | None = None) -> None:
        self._until = until
        self._past = False
        self._lines: list[dict[str, Any]] = []
        try:
            lines = [json.loads(line) for line in Path(path).read_bytes().splitlines()]
        except (OSError, ValueError) as error:
            raise SdkError(f"{path}: {error}") from error
        if not lines or lines[-1].get("kind") != "end" or lines[-1].get("count") != len(lines) - 1:
            raise ReplayDivergence(max(len(lines) - 1, 0), "the record of boundaries is cut off")
        self._lines = lines[:-1]
        if until is not None:
            # A fork: what was recorded in the step it forks at, and after, is the parent's future and not its own.
            ends = (number for number, line in enumerate(self._lines) if not self.covers(line.get("step_index")))
            self._lines = self._lines[: next(ends, len(self._lines))]
        self._past = False
        self._next = 0

    def covers(self, step_index: int | None) -> bool:
        """Whether a call is answered from the record: all before the first one of the step that a fork begins with."""
        if self._until is not None and step_index is not None and step_index >= self._until:
            self._past = True
        return not self._past

    def answer(self, kind: str, name: str, request: Any) -> dict[str, Any]:
        """What was recorded for this call; ReplayDivergence when another call, or none, was recorded here."""
        index = self._next
        if index >= len(self._lines):
            raise ReplayDivergence(index, f"{kind} {name!r} was not recorded", None, request)
        line = self._lines[index]
        if (line["kind"], line["name"]) != (kind, name):
            told = f"{kind} {name!r} is called where {line['kind']} {line['name']!r} was recorded"
            raise ReplayDivergence(index, told, line["name"], name)
        if line["request_digest"] != digest_of(request):
            raise ReplayDivergence(index, f"{kind} {name!r} is asked something else", line["request"], request)
        self._next += 1
        return {"response": line["response"]} if "response" in line else {"error": line["error"]}

    @property
    def left(self) -> int:
        """Recorded boundaries that no call has met yet."""
        return len(self._lines) - self._next
