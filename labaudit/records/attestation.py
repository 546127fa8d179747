"""attestation.json: the readable summary of what a run rests on; its signatures stand beside it."""

from __future__ import annotations

from typing import Literal

from labaudit.records.base import Record
from labaudit.records.fields import (
    ArtifactRef,
    Comparability,
    Count,
    DigestText,
    Fingerprint,
    Hex64,
    IntegrationLevel,
    Interpretability,
    Isolation,
    JsonObject,
    Many,
    Positive,
    Provenance,
    Replay,
    Text,
    Timestamp,
    TracingMode,
)
from labaudit.records.parts import RedactionRule, RunTree, SourceProvenance, Tool


class HashchainHead(Record):
    """Where one trial's event log ended."""

    trial_id: Text
    attempt: Positive
    count: Count
    head: Hex64


class ArtifactStoreRoot(Record):
    """How many artifacts there are, and one digest over all of their names."""

    count: Count
    root: Hex64


class AttestedHarness(Record):
    """The identity of the harness."""

    name: Text | None
    version: Text | None = None
    source_digest: DigestText | None
    source_provenance: SourceProvenance | None = None
    exec_digest: DigestText | None
    entry_command: Many[Text]
    runtime_fingerprint: Fingerprint | None
    lockfile_digest: DigestText | None


class AttestedTracing(Record):
    """How traces were taken in."""

    mode: TracingMode


class AttestedRedaction(Record):
    """The rules, and a digest over what they removed."""

    rules: Many[RedactionRule]
    summary_digest: DigestText
    counts: dict[str, Count] | None = None


class GradesSummary(Record):
    """The run's five grades."""

    isolation: Isolation
    replay: Replay
    interpretability: Interpretability
    comparability: Comparability
    provenance: Provenance
    integration_level: IntegrationLevel | Literal["not_observed"] | None = None


class SbomDocument(Record):
    """A bill of materials, made by reading the image or supplied by someone."""

    path: Text
    format: Literal["cyclonedx", "spdx"]
    sha256: Hex64
    origin: Literal["generated", "supplied"]
    artifact_ref: ArtifactRef | None = None


class SbomMissing(Record):
    """A bill of materials that could not be made, and why."""

    subject: Text
    reason: Text


class AttestedSbom(Record):
    """Which bills of materials there are."""

    mode: Literal["off", "optional", "required"]
    documents: Many[SbomDocument]
    missing: Many[SbomMissing]


class Attestation(Record):
    """Everything the seed's attestation lists, as one page."""

    schema_version: Literal["attestation_v1"] = "attestation_v1"
    run_id: Text
    created_at: Timestamp
    tool: Tool
    resolved_digest: DigestText
    image_digest: DigestText | None
    run_tree: RunTree
    hashchain_heads: Many[HashchainHead]
    artifact_store: ArtifactStoreRoot
    harness: AttestedHarness
    hooks_schema_version: Literal["hook_events_v1"] | None
    tracing: AttestedTracing
    redaction: AttestedRedaction
    grades: GradesSummary
    sbom: AttestedSbom
    ext: JsonObject | None = None
