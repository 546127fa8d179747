"""The `runtime` block of a resolved experiment: every name resolved to a digest."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from labaudit.records.acp_permissions import AcpToolKind
from labaudit.records.base import Record
from labaudit.records.fields import (
    ArtifactRef,
    DigestText,
    Enforcement,
    EnvName,
    Fingerprint,
    IntegrationLevel,
    Many,
    NetworkMode,
    Number,
    Positive,
    Text,
    TracingMode,
)
from labaudit.records.parts import SourceProvenance
from labaudit.records.trial_input import Budgets, ControlPlane

ResolvedEngineName = Literal["docker", "bubblewrap", "process", "imported"]


class ResolvedEngine(Record):
    """What was asked for, what was taken, and why."""

    requested: Literal["auto"] | ResolvedEngineName
    resolved: ResolvedEngineName
    reason: Text | None = None


class ResolvedImage(Record):
    """The image by id."""

    requested: Text | None
    id: DigestText | None
    origin: Literal["bundled", "engine", "archive", "none", "imported"]


class ResolvedTracing(Record):
    """How traces are taken."""

    mode: TracingMode
    otlp_endpoint: Text | None = None
    trace_manifest_path: Text | None = None


class ResolvedAllowOnce(Record):
    """Kinds of tool call that an ACP agent is permitted, each time anew."""

    allow_once: Annotated[Many[AcpToolKind], Field(min_length=1)]


class ResolvedMcpServer(Record):
    """An MCP server that an ACP agent may be given."""

    model_config = ConfigDict(extra="allow")

    name: Text


class ResolvedHarness(Record):
    """The program under test by digest."""

    mode: Literal["cli", "acp", "sdk", "imported"]
    command: Many[Text]
    source: Text | None = None
    source_digest: DigestText | None = None
    source_provenance: SourceProvenance | None = None
    source_archive_ref: ArtifactRef | None = None
    exec_digest: DigestText | None
    lockfile: Text | None = None
    lockfile_digest: DigestText | None = None
    runtime_fingerprint: Fingerprint | None = None
    integration_level: IntegrationLevel
    control_plane: ControlPlane
    tracing: ResolvedTracing
    env: dict[str, str]
    secrets: Many[EnvName]
    input_path: Text
    output_path: Text
    prompt: Text | None = None
    permissions: Literal["deny_all"] | ResolvedAllowOnce | None = None
    mode_id: Text | None = None
    model: Text | None = None
    mcp_servers: Many[ResolvedMcpServer] | None = None
    dialect: Literal["v1", "kiro"] | None = None


class ResolvedNetwork(Record):
    """What the trial may reach, and by which means that is to be enforced."""

    mode: NetworkMode
    enforcement: Literal["auto"] | Enforcement
    allowed_hosts: Many[Text]
    allowed_networks: Many[Text]


class ResolvedTimeouts(Record):
    """Seconds."""

    trial_seconds: Positive
    tool_seconds: Positive | None = None


class ResolvedResources(Record):
    """Limits of one trial's sandbox."""

    memory_mb: Positive
    cpus: Annotated[Number, Field(gt=0)]
    pids: Positive
    out_mb: Positive
    workspace_mb: Positive


class ResolvedCheckpoints(Record):
    """When the state of a trial is saved."""

    every_steps: Positive | None
    at_end: bool


class ResolvedCache(Record):
    """A folder that trials find read-only at /cache."""

    path: Text
    digest: DigestText


class ResolvedRuntime(Record):
    """Where and how trials run."""

    engine: ResolvedEngine
    image: ResolvedImage
    harness: ResolvedHarness
    network: ResolvedNetwork
    budgets: Budgets
    timeouts: ResolvedTimeouts
    resources: ResolvedResources
    checkpoints: ResolvedCheckpoints
    cache: ResolvedCache | None
