"""One line of network_events.jsonl: a decision of the egress proxy."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from labaudit.records.base import NULL_IS_A_VALUE, Record
from labaudit.records.fields import Count, JsonObject, NotNegative, Positive, Text, Timestamp, whole
from labaudit.records.ids import Ids

Port = Annotated[int, BeforeValidator(whole), Field(ge=0, le=65535)]


class NetworkEvent(Record):
    """A connection was allowed or blocked by a rule; nothing is said about why it was tried."""

    schema_version: Literal["network_event_v1"] = "network_event_v1"
    seq: Count
    ts: Timestamp
    ids: Ids | None = None
    attempt: Positive | None = None
    source: Literal["network_proxy"] | None = None
    decision: Literal["allow", "block"]
    rule: Text
    reason: str | None = None
    host: str | None
    port: Port | None
    transport: Literal["connect", "http", "tcp", "udp", "other"] | None = None
    method: str | None = None
    sni: Annotated[str | None, NULL_IS_A_VALUE] = None
    address: Annotated[str | None, NULL_IS_A_VALUE] = None
    bytes_up: Count | None = None
    bytes_down: Count | None = None
    duration_ms: NotNegative | None = None
    count: Positive | None = None
    last_ts: Timestamp | None = None
    ext: JsonObject | None = None
