"""One line of events.jsonl: a framework event in its hash chain."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from labaudit.records.base import Record
from labaudit.records.fields import ArtifactRef, Count, EvidenceSource, Hex64, Positive, Text, Timestamp
from labaudit.records.ids import Ids
from labaudit.records.parts import Redaction


class Hashchain(Record):
    """The link to the event before, and this event's own hash."""

    prev: Hex64
    self_: Hex64 = Field(alias="self")


class EventEnvelope(Record):
    """An event; its payload, already redacted, lies in the artifact store."""

    schema_version: Literal["event_envelope_v1"] = "event_envelope_v1"
    seq: Count
    ts: Timestamp
    event_type: Text
    ids: Ids
    attempt: Positive
    source: EvidenceSource
    step_index: Count | None = None
    payload_ref: ArtifactRef | None = None
    redaction: Redaction
    hashchain: Hashchain
