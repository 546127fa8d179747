"""harness_manifest.json: what a harness says it is and what it will write."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import ConfigDict, model_validator

from labaudit.records.base import Record
from labaudit.records.fields import (
    Command,
    DigestText,
    IntegrationLevel,
    JsonObject,
    RedactionMode,
    Text,
    Timestamp,
    TracingMode,
)
from labaudit.records.parts import SourceProvenance

_NEEDS_HOOKS = frozenset({"cli_events", "sdk_control", "sdk_full"})


class HarnessRuntime(Record):
    """Versions of what runs the harness, by name; only the one for node has a fixed type."""

    model_config = ConfigDict(extra="allow")

    node: str | None = None


class HarnessDescription(Record):
    """Name, version and digests of the harness, as it states them."""

    name: Text
    version: Text | None = None
    source_digest: DigestText | None = None
    source_provenance: SourceProvenance | None = None
    exec_digest: DigestText | None = None
    entry_command: Command | None = None
    runtime: HarnessRuntime | None = None
    lockfile_digest: DigestText | None = None


class Step(Record):
    """What one agent step means here."""

    semantics: Text


class Hooks(Record):
    """Where the hook events are written."""

    schema_version: Literal["hook_events_v1"] = "hook_events_v1"
    events_path: Text
    header_event_emitted: bool | None = None


class ManifestControlPlane(Record):
    """How the harness listens for control; a path is needed for `file` only."""

    mode: Literal["file", "sdk"]
    path: Text | None = None
    format_version: str | None = None

    @model_validator(mode="after")
    def _file_mode_needs_a_path(self) -> Self:
        if self.mode == "file" and self.path is None:
            raise ValueError("mode file needs a path")
        return self


class ManifestTracing(Record):
    """Which traces the harness exports."""

    mode: TracingMode
    otlp_endpoint: Text | None = None
    trace_manifest_path: Text | None = None


class ManifestRedaction(Record):
    """What the harness removes before it writes."""

    mode: Literal["on", "off"]
    applied_by_harness: bool | None = None
    content_policy: RedactionMode | None = None


class HarnessManifest(Record):
    """The harness's own statement; a claim, which evidence may cap and never the reverse."""

    schema_version: Literal["harness_manifest_v1"] = "harness_manifest_v1"
    created_at: Timestamp
    integration_level: IntegrationLevel
    harness: HarnessDescription | None = None
    step: Step
    hooks: Hooks | None = None
    control_plane: ManifestControlPlane | None = None
    tracing: ManifestTracing | None = None
    redaction: ManifestRedaction | None = None
    ext: JsonObject | None = None

    @model_validator(mode="after")
    def _level_needs_its_channel(self) -> Self:
        if self.integration_level in _NEEDS_HOOKS and self.hooks is None:
            raise ValueError(f"integration_level {self.integration_level} needs hooks")
        if self.integration_level == "otel" and self.tracing is None:
            raise ValueError("integration_level otel needs tracing")
        return self
