"""trace_manifest.json: the trace files of a trial."""

from __future__ import annotations

from typing import Literal

from labaudit.records.base import Record
from labaudit.records.fields import ArtifactRef, Count, Hex64, JsonObject, Many, Text, Timestamp
from labaudit.records.ids import Ids
from labaudit.records.parts import Redaction


class TraceFile(Record):
    """One file of spans."""

    path: Text
    format: Text
    sha256: Hex64
    bytes: Count
    span_count: Count | None = None
    artifact_ref: ArtifactRef | None = None


class TraceManifest(Record):
    """Written by a harness that exports files, or by the runner for the spans it received."""

    schema_version: Literal["trace_manifest_v1"] = "trace_manifest_v1"
    created_at: Timestamp
    ids: Ids
    traces: Many[TraceFile]
    redaction: Redaction | None = None
    ext: JsonObject | None = None
