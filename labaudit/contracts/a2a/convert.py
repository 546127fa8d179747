"""One A2A packet to one canonical event: what was visible in it, and nothing about whether it was right.

    event = convert_packet(data)                                  strict: an incomplete packet is an AdapterError
    event = convert_packet(data, Options(mode="lenient"))         lenient: what is missing is substituted and noted
    line = event_bytes(event)                                     key order as in the freeze

Same bytes and options, same event, byte for byte: there is no clock and no randomness in here.
"""

from __future__ import annotations

import orjson

from labaudit import __version__
from labaudit.contracts.a2a.discovery import observe_discovery
from labaudit.contracts.a2a.errors import AdapterError
from labaudit.contracts.a2a.handoff import TASK_REQUESTED, observe_handoff
from labaudit.contracts.a2a.packet import KNOWN_KEYS, PROTOCOL, Options, Packet, RawWriter, name_raw_bytes, read_packet
from labaudit.contracts.dates import parse_moment, utc_text

ADAPTER_ID = "labaudit-adapter-a2a"
SOURCE = "urn:assay:adapter:a2a"
DEFAULT_TIME = "2023-11-16T02:00:00Z"
TASK_UPDATED = "assay.adapter.a2a.task.updated"
ARTIFACT_SHARED = "assay.adapter.a2a.artifact.shared"
FALLBACK = "assay.adapter.a2a.message"
EVENT_TYPES = {
    "agent.capabilities": "assay.adapter.a2a.agent.capabilities",
    "task.requested": TASK_REQUESTED,
    "task.updated": TASK_UPDATED,
    "artifact.shared": ARTIFACT_SHARED,
}
_TASK_EVENTS = (TASK_REQUESTED, TASK_UPDATED)
_KEPT = {"task": ("status", "kind"), "artifact": ("name", "media_type"), "message": ("role",)}
_STRICT = Options()

Event = dict[str, object]


def convert_packet(data: bytes, options: Options = _STRICT, keep_raw: RawWriter = name_raw_bytes) -> Event:
    """The event that `data` gives, shaped as a2a_event_v1; AdapterError when it gives none."""
    packet = read_packet(data, options, keep_raw)
    upstream = packet.text("event_type")
    mapped = EVENT_TYPES.get(upstream) if upstream is not None else None
    sent = {name: packet.part(name).get("id") for name in ("agent", "task", "artifact", "message")}
    ids = {name: value if isinstance(value, str) else None for name, value in sent.items()}
    if options.mode == "strict":
        _refuse_what_strict_mode_needs(ids, mapped)
    handoff = observe_handoff(
        mapped or FALLBACK,
        packet.part("task").get("kind"),
        task_id_was_sent=ids["task"] is not None,
        message_id_was_sent=ids["message"] is not None,
    )
    event_type, notes = _substitute(ids, mapped)
    unmapped = len(packet.fields.keys() - KNOWN_KEYS) + len(notes)
    payload = _payload(packet, upstream, ids, handoff, unmapped)
    time = _time(packet, notes)
    if packet.duplicate_keys:
        # Another reader may have kept the first value, so the note names the keys a handoff could hide behind.
        notes.append("duplicate keys, the last value was kept: " + _some(packet.duplicate_keys))
    subject = next(ids[name] for name in ("task", "artifact", "message", "agent") if ids[name] is not None)
    return {
        "schema_version": "a2a_event_v1",
        "event_type": event_type,
        "source": SOURCE,
        "subject": subject,
        "run_id": f"a2a:{subject}",
        "seq": 0,
        "time": time,
        "payload": payload,
        "lossiness": "none" if unmapped == 0 else "low" if unmapped <= 2 else "high",
        "notes": notes,
        "raw": packet.raw.as_json(),
    }


def event_bytes(event: Event) -> bytes:
    """The event as one line of compact JSON in the freeze's key order, without a newline."""
    return orjson.dumps(event)


def _refuse_what_strict_mode_needs(ids: dict[str, str | None], mapped: str | None) -> None:
    lenient = "convert with --mode lenient to have it substituted and noted"
    if ids["agent"] is None:
        raise AdapterError("measurement", "missing required field: agent.id", hint=lenient)
    if mapped is None:
        raise AdapterError(
            "strict_lossiness_violation",
            "unsupported event_type in strict mode",
            hint="known: " + ", ".join(EVENT_TYPES) + "; lenient mode emits a generic message event",
        )
    if mapped in _TASK_EVENTS and ids["task"] is None:
        raise AdapterError("measurement", "missing required field: task.id", hint=lenient)
    if mapped == ARTIFACT_SHARED and ids["artifact"] is None:
        raise AdapterError("measurement", "missing required field: artifact.id", hint=lenient)


def _substitute(ids: dict[str, str | None], mapped: str | None) -> tuple[str, list[str]]:
    """Fills the ids that the event needs; one note for each, and one for an event type that is not known."""
    notes: list[str] = []

    def need(name: str) -> None:
        if ids[name] is None:
            ids[name] = f"unknown-{name}"
            notes.append(f"missing {name}.id -> substituted unknown-{name}")

    need("agent")
    if mapped is None:
        notes.append("unsupported event_type -> emitted generic A2A message event")
        need("message")
    elif mapped in _TASK_EVENTS:
        need("task")
    elif mapped == ARTIFACT_SHARED:
        need("artifact")
    return mapped or FALLBACK, notes


def _payload(
    packet: Packet, upstream: str | None, ids: dict[str, str | None], handoff: dict[str, object], unmapped: int
) -> dict[str, object]:
    payload: dict[str, object] = {
        "adapter_id": ADAPTER_ID,
        "adapter_version": __version__,
        "protocol": PROTOCOL,
        "protocol_name": PROTOCOL,
        "protocol_version": packet.version,
    }
    if upstream is not None:
        payload["upstream_event_type"] = upstream
    payload["agent"] = _agent(packet.part("agent"), ids["agent"])
    for name, kept in _KEPT.items():
        if ids[name] is not None:
            part = packet.part(name)
            payload[name] = {"id": ids[name], **{key: part[key] for key in kept if isinstance(part.get(key), str)}}
    attributes = packet.fields.get("attributes")
    if "attributes" in packet.fields:
        payload["attributes"] = normalise(attributes)
    payload["discovery"] = observe_discovery(attributes)
    payload["handoff"] = handoff
    payload["unmapped_fields_count"] = unmapped
    return payload


def _agent(sent: dict[str, object], agent_id: str | None) -> dict[str, object]:
    agent: dict[str, object] = {"id": agent_id}
    if isinstance(sent.get("role"), str):
        agent["role"] = sent["role"]
    capabilities = sent.get("capabilities")
    if isinstance(capabilities, list):
        agent["capabilities"] = sorted(item for item in capabilities if isinstance(item, str))
    return agent


def normalise(value: object) -> object:
    """Keys sorted at every level; arrays of strings alone are sorted, other arrays keep their order."""
    if isinstance(value, dict):
        return {key: normalise(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        if all(isinstance(item, str) for item in value):
            return sorted(value)
        return [normalise(item) for item in value]
    return value


def _time(packet: Packet, notes: list[str]) -> str:
    moment = parse_moment(packet.fields.get("timestamp"))
    text = utc_text(moment) if moment is not None else None
    if moment is None or text is None:
        notes.append(f"timestamp is missing or no RFC 3339 time -> {DEFAULT_TIME}")
        return DEFAULT_TIME
    if moment.leap:
        notes.append("timestamp is a leap second -> the second after it")
    return text


def _some(keys: tuple[str, ...]) -> str:
    more = f" and {len(keys) - 10} more" if len(keys) > 10 else ""
    return ", ".join(key[:60] for key in keys[:10]) + more
