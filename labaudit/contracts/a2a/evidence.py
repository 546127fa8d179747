"""The packets that a harness wrote to the lines of `a2a_events.jsonl`, and to a count that pages can show.

The runner calls `events_from_packets` once per trial; `verify` and `labaudit a2a check` call it again on the stored
packets and compare. Packets are converted leniently: what is missing is substituted and noted, so that a lossy packet
is still shown. What even lenient mode refuses is listed as refused, never left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from labaudit.contracts.a2a.convert import Event
from labaudit.contracts.a2a.packet import Options, RawPayload, RawWriter, name_raw_bytes
from labaudit.contracts.a2a.stream import convert_lines
from labaudit.core.canonical import MAX_SAFE_INTEGER, canonical_bytes

_LENIENT = Options(mode="lenient")


@dataclass(frozen=True, slots=True)
class Refused:
    """A packet that gave no event."""

    line: int
    error_kind: str
    message: str
    raw: RawPayload

    def as_json(self) -> dict[str, object]:
        """The refusal as a JSON object."""
        return {
            "line": self.line,
            "error_kind": self.error_kind,
            "message": self.message,
            "raw": self.raw.as_json(),
        }


@dataclass(slots=True)
class A2aEvidence:
    """All events of one trial, as records and as canonical lines, and the packets that gave none."""

    events: list[Event] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)

    def file_bytes(self) -> bytes:
        """The content of `a2a_events.jsonl`."""
        return b"".join(line + b"\n" for line in self.lines)

    def summary(self) -> dict[str, object]:
        """Counts in visibility language: what was seen, not what it meant."""
        by_type: dict[str, int] = {}
        visible = 0
        for event in self.events:
            name = str(event["event_type"])
            by_type[name] = by_type.get(name, 0) + 1
            visible += handoff_of(event)["visible"] is True
        return {
            "packets": len(self.events) + len(self.refused),
            "events": len(self.events),
            "refused": [refusal.as_json() for refusal in self.refused],
            "event_types": dict(sorted(by_type.items())),
            "handoff_surfaces_visible": visible,
        }


def events_from_packets(
    packets: Iterable[bytes], *, options: Options = _LENIENT, keep_raw: RawWriter = name_raw_bytes
) -> A2aEvidence:
    """Packets (the lines of `a2a_packets.jsonl`) to evidence; `keep_raw` stores each packet's exact bytes."""
    evidence = A2aEvidence()
    for result in convert_lines(packets, options, keep_raw):
        if result.event is not None:
            event = exact_numbers(result.event)
            evidence.events.append(event)
            evidence.lines.append(canonical_bytes(event))
        elif result.error is not None:
            raw = name_raw_bytes(result.data)
            evidence.refused.append(Refused(result.line, result.error.kind, result.error.message, raw))
    return evidence


def handoff_of(event: Event) -> dict[str, object]:
    """The handoff object of an event."""
    payload = event["payload"]
    handoff = payload.get("handoff") if isinstance(payload, dict) else None
    return handoff if isinstance(handoff, dict) else {}


def exact_numbers(event: Event) -> Event:
    """The event with every number that canonical JSON cannot keep written as text, and a note when there was one.

    Integers and whole doubles beyond 2^53 - 1 are copied from a packet's attributes as the adapter's contract asks,
    but RFC 8785 would round them. The raw packet keeps them.
    """
    payload = event["payload"]
    if not isinstance(payload, dict) or "attributes" not in payload:
        return event
    attributes, changed = _numbers_as_text(payload["attributes"])
    if not changed:
        return event
    notes = event["notes"]
    noted = [*notes, f"{changed} numbers beyond 2^53 in attributes -> text"] if isinstance(notes, list) else notes
    return {**event, "payload": {**payload, "attributes": attributes}, "notes": noted}


def _numbers_as_text(value: object) -> tuple[object, int]:
    if isinstance(value, dict):
        pairs = {key: _numbers_as_text(item) for key, item in value.items()}
        return {key: item for key, (item, _) in pairs.items()}, sum(count for _, count in pairs.values())
    if isinstance(value, list):
        items = [_numbers_as_text(item) for item in value]
        return [item for item, _ in items], sum(count for _, count in items)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) > MAX_SAFE_INTEGER:
        return str(value), 1
    return value, 0
