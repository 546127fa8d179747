"""harness_manifest.json to what the harness claims: its level, what a step means, where its events and traces are.

A claim caps what evidence may show; it never raises it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from labaudit.core.digest import Digest
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput, Contradiction
from labaudit.evidence.inside_out import CONTAINER_OUT, relative_inside
from labaudit.records.fields import IntegrationLevel
from labaudit.records.harness_manifest import HarnessManifest as ManifestRecord
from labaudit.records.schema_registry import validate
from labaudit.store import atomic

DEFAULT_EVENTS = "harness_events.jsonl"
DEFAULT_TRACES = "trace_manifest.json"
BOUNDARIES = "sdk_boundaries.jsonl"
MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class HarnessManifest:
    """A manifest that keeps to its schema, with the digest of its exact bytes."""

    record: ManifestRecord
    digest: Digest

    @classmethod
    def load(cls, path: Path) -> HarnessManifest:
        """The manifest in a file. BadInput when it is not there or no JSON, Contradiction when it breaks its schema."""
        return cls.from_bytes(atomic.read_bytes(path, max_bytes=MAX_BYTES), where=str(path))

    @classmethod
    def from_bytes(cls, data: bytes, *, where: str = "harness_manifest.json") -> HarnessManifest:
        """The same from bytes."""
        value = parse_object(data, where=where, max_bytes=MAX_BYTES)
        findings = validate("harness_manifest_v1", value)
        if findings:
            more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
            first = f"{findings[0].path}: {findings[0].message}"
            raise Contradiction(f"breaks harness_manifest_v1 at {first}{more}", where=where)
        return cls(ManifestRecord.from_json(value, where=where), Digest.of(data))

    @property
    def level(self) -> IntegrationLevel:
        """The claimed integration level."""
        return self.record.integration_level

    @property
    def step_semantics(self) -> str:
        """What the harness means by a step."""
        return self.record.step.semantics

    @property
    def header_promised(self) -> bool:
        """The manifest says that the stream starts with `hooks.header`."""
        return self.record.hooks is not None and self.record.hooks.header_event_emitted is True

    @property
    def declares_control(self) -> bool:
        """The manifest says how the harness listens for control."""
        return self.record.control_plane is not None

    def events_path(self, inside_out: str = CONTAINER_OUT) -> str | None:
        """Where the hook events are, relative to the out folder; None when no hooks are declared."""
        if self.record.hooks is None:
            return None
        return relative_inside(self.record.hooks.events_path, inside_out=inside_out, where="hooks.events_path")

    def trace_manifest_path(self, inside_out: str = CONTAINER_OUT) -> str:
        """Where the harness puts its trace manifest, relative to the out folder."""
        tracing = self.record.tracing
        declared = tracing.trace_manifest_path if tracing is not None else None
        return relative_inside(declared or DEFAULT_TRACES, inside_out=inside_out, where="tracing.trace_manifest_path")

    def boundaries_path(self, inside_out: str = CONTAINER_OUT) -> str:
        """Where an SDK harness records its causal boundaries, relative to the out folder."""
        sdk = (self.record.ext or {}).get("sdk")
        declared = sdk.get("boundaries_path") if isinstance(sdk, dict) else None
        if declared is not None and not isinstance(declared, str):
            raise BadInput("ext.sdk.boundaries_path is no text", where="harness_manifest.json")
        return relative_inside(declared or BOUNDARIES, inside_out=inside_out, where="ext.sdk.boundaries_path")
