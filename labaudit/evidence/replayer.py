"""An event of a stored log, chosen by a selector, to the bytes of its payload.

    seq:12 or 12      the event with that seq
    last              the last event
    step:3            the first event that belongs to step 3
    hooks:5           the sixth event that came from the hook stream, counted from 0

The payload of an event from the hook stream is its own line of the stream that all of them share.
"""

from __future__ import annotations

import re
from pathlib import Path

from labaudit.errors import BadInput
from labaudit.store.artifact_store import ArtifactStore
from labaudit.store.event_log import EventIndex, read_events

_SELECTOR = re.compile(r"(?:(seq|step|hooks):)?(\d{1,15})")


class Replayer:
    """Reads payloads of one sealed log; every payload is hashed again on its way out."""

    def __init__(self, events: Path, store: ArtifactStore) -> None:
        self._path = events
        self._store = store
        self._index = EventIndex(events)

    def find(self, event_selector: str | int) -> dict[str, object]:
        """The event that a selector names, or BadInput."""
        text = str(event_selector)
        if text == "last":
            return self._index.at(len(self._index) - 1)
        match = _SELECTOR.fullmatch(text)
        if match is None:
            hint = "seq:N, step:N, hooks:N or last"
            raise BadInput(f"{text[:60]!r} selects no event", where=str(self._path), hint=hint)
        kind, number = match.group(1) or "seq", int(match.group(2))
        if kind == "seq":
            return self._index.at(number)
        if kind == "step":
            chosen = (event for event in read_events(self._path) if event.get("step_index") == number)
            found = next(chosen, None)
        else:
            hooks = (event for event in read_events(self._path) if event["source"] == "hooks")
            found = next((event for place, event in enumerate(hooks) if place == number), None)
        if found is None:
            raise BadInput(f"no event fits {text}", where=str(self._path))
        return found

    def replay(self, event_selector: str | int) -> bytes:
        """The payload of the chosen event; BadInput when it has none."""
        event = self.find(event_selector)
        reference = event.get("payload_ref")
        if not isinstance(reference, str):
            raise BadInput(f"event {event['seq']} ({event['event_type']}) has no payload", where=str(self._path))
        if event["source"] != "hooks":
            return self._store.get(reference)
        return self._hook_line(event, reference)

    def _hook_line(self, event: dict[str, object], reference: str) -> bytes:
        place = 0
        for earlier in read_events(self._path):
            if earlier["seq"] == event["seq"]:
                break
            place += earlier["source"] == "hooks"
        wanted: bytes | None = None
        # Read to the end although the line may be early: only then is the whole payload known to be unchanged.
        with self._store.open(reference) as stream:
            for number, line in enumerate(stream):
                if number == place:
                    wanted = line.rstrip(b"\r\n")
        if wanted is None:
            raise BadInput(f"the hook stream has no line {place + 1}", where=reference)
        return wanted
