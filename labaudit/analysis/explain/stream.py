"""The lines of one evidence file, reduced to the keys that are compared, or why they are not counted.

A stream may hold hundreds of thousands of events with large payloads. Lines are read one by one, each keeps only the
keys that its reader names, and equal values are kept once: memory follows the number of kept events, not of bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from labaudit.core.strict_json import parse_json
from labaudit.errors import BadInput

Event = Mapping[str, object]
MAX_STREAM_BYTES = 64 << 20
# Values that recur (`{"status": "ok"}`, an event type) are worth sharing; ever new ones are not worth remembering.
_SHARED = 4096


@dataclass(frozen=True)
class Stream:
    """The lines of one evidence file; `problem` says why it is not counted."""

    events: tuple[Event, ...] = ()
    present: bool = False
    problem: str | None = None

    @property
    def usable(self) -> bool:
        """There, and readable to the end."""
        return self.present and self.problem is None


def read_stream(path: Path, keys: Collection[str], *, keep: Callable[[Event], bool] | None = None) -> Stream:
    """A file of JSON lines, each with these keys alone; one bad line makes the whole of it unusable.

    A half would look shorter. `keep` sees every whole event in order and says which are kept; it may raise BadInput for
    a line that the stream cannot have.
    """
    if not path.is_file() or path.is_symlink():
        return Stream()
    if path.stat().st_size > MAX_STREAM_BYTES:
        return Stream(present=True, problem=f"is larger than {MAX_STREAM_BYTES} bytes")
    events: list[Event] = []
    share = _Sharing()
    number = 0
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                event = parse_json(line.rstrip(b"\r\n"))
            except BadInput as error:
                return Stream(present=True, problem=f"line {number} {error.what}")
            if not isinstance(event, dict):
                return Stream(present=True, problem=f"line {number} is no JSON object")
            try:
                kept = keep is None or keep(event)
            except BadInput as error:
                return Stream(present=True, problem=error.what)
            if kept:
                events.append({key: share(event[key]) for key in keys if key in event})
    return Stream(tuple(events), present=True)


class _Sharing:
    """One object for equal strings and equal small JSON values."""

    def __init__(self) -> None:
        self._known: dict[str, object] = {}

    def __call__(self, value: object) -> object:
        if isinstance(value, str):
            name = value
        elif isinstance(value, dict):
            name = "\0" + json.dumps(value, sort_keys=True)
        else:
            return value
        found = self._known.get(name)
        if found is not None:
            return found
        if len(self._known) < _SHARED and len(name) < 1024:
            self._known[name] = value
        return value
