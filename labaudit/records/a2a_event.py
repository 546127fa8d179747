"""One line of a2a_events.jsonl: what was visible in one A2A packet."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, StringConstraints

from labaudit.records.base import NULL_IS_A_VALUE, Record
from labaudit.records.fields import ArtifactRef, Count, Hex64, Many, Text, Timestamp


def _boolean(value: object) -> object:
    if not isinstance(value, bool):
        raise ValueError("should be false")
    return value


# Python counts 0 as False; JSON does not.
AlwaysFalse = Annotated[Literal[False], BeforeValidator(_boolean)]


class A2AAgent(Record):
    """The agent that the packet names."""

    id: str
    role: str | None = None
    capabilities: Many[str] | None = None


class A2ATask(Record):
    """The task that the packet names."""

    id: str
    status: str | None = None
    kind: str | None = None


class A2AArtifact(Record):
    """The artifact that the packet names."""

    id: str
    name: str | None = None
    media_type: str | None = None


class A2AMessage(Record):
    """The message that the packet names."""

    id: str
    role: str | None = None


class Discovery(Record):
    """Visibility of agent cards; it never influences `handoff`."""

    agent_card_visible: bool
    agent_card_source_kind: Literal["attributes", "unknown"]
    extended_card_access_visible: bool
    signature_material_visible: AlwaysFalse


class Handoff(Record):
    """Observed visibility only: none of these say that a handoff was valid, authorised, complete or successful."""

    visible: bool
    source_kind: Literal["typed_payload", "unknown"]
    task_ref_visible: bool
    message_ref_visible: bool


class A2APayload(Record):
    """The canonical payload of the adapter, in the freeze's key order."""

    adapter_id: Text
    adapter_version: Text
    protocol: Literal["a2a"]
    protocol_name: Literal["a2a"]
    protocol_version: Text
    upstream_event_type: str | None = None
    agent: A2AAgent
    task: A2ATask | None = None
    artifact: A2AArtifact | None = None
    message: A2AMessage | None = None
    attributes: Annotated[Any, NULL_IS_A_VALUE] = None
    discovery: Discovery
    handoff: Handoff
    unmapped_fields_count: Count


class RawPacket(Record):
    """The exact bytes that came in, by digest."""

    sha256: Hex64
    size: Count
    media_type: Text
    artifact_ref: ArtifactRef | None = None


class A2AEvent(Record):
    """One packet as one canonical event."""

    schema_version: Literal["a2a_event_v1"] = "a2a_event_v1"
    event_type: Literal[
        "assay.adapter.a2a.agent.capabilities",
        "assay.adapter.a2a.task.requested",
        "assay.adapter.a2a.task.updated",
        "assay.adapter.a2a.artifact.shared",
        "assay.adapter.a2a.message",
    ]
    source: Literal["urn:assay:adapter:a2a"] = "urn:assay:adapter:a2a"
    subject: str
    run_id: Annotated[str, StringConstraints(pattern=r"^a2a:")]
    seq: Count
    time: Timestamp
    payload: A2APayload
    lossiness: Literal["none", "low", "high"]
    notes: Many[str]
    raw: RawPacket
