"""The `runtime` block of experiment.yaml: engine, image, harness, network and limits."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from labaudit.records.acp_permissions import AcpToolKind, kinds_in_a_list, known_kind, policy_by_name, policy_shape
from labaudit.records.authored import Authored
from labaudit.records.fields import (
    Command,
    Count,
    EnvName,
    IntegrationLevel,
    Many,
    NetworkMode,
    Positive,
    Text,
    TracingMode,
)

CONTROL_PATH = "/state/lab_control.json"

EngineName = Literal["auto", "docker", "bubblewrap", "process"]
RequestedEnforcement = Literal[
    "auto",
    "docker_none",
    "bubblewrap_netns",
    "unix_socket_proxy",
    "sidecar_proxy",
    "netns_iptables",
    "none",
    "unknown",
]


class ControlPlaneConfig(Authored):
    """How the runner speaks to the harness."""

    mode: Literal["file", "sdk"] = Field("file", description="every harness can read a file")
    path: Text | None = Field(CONTROL_PATH, description="the path that the contract names")

    @model_validator(mode="after")
    def _file_mode_needs_a_path(self) -> Self:
        if self.mode == "file" and self.path is None:
            raise ValueError("mode file needs a path")
        return self


class TracingConfig(Authored):
    """Whether spans are received, read from files, or not taken at all."""

    mode: TracingMode = Field("none", description="no traces unless asked for")
    otlp_endpoint: Text | None = None
    trace_manifest_path: Text | None = None


class AllowOnce(Authored):
    """Kinds of tool call that an ACP agent is permitted, each time anew."""

    allow_once: Annotated[Many[Annotated[AcpToolKind, BeforeValidator(known_kind)]], BeforeValidator(kinds_in_a_list)]


# Told apart by shape, so that a wrong value is told once and not once for each form it might have had. The brackets
# mark the tags as no key of the file.
AcpPermissions = Annotated[
    Annotated[Literal["deny_all"], BeforeValidator(policy_by_name), Tag("[word]")]
    | Annotated[AllowOnce, Tag("[kinds]")],
    Discriminator(policy_shape),
]


class McpServer(Authored):
    """An MCP server that an ACP agent may be given: started by a command, or reached by URL."""

    name: Text
    command: Text | None = None
    args: Many[str] | None = None
    env: dict[str, str] | None = None
    type: Literal["stdio", "http", "sse"] | None = None
    url: Text | None = None
    headers: dict[str, str] | None = None


class HarnessConfig(Authored):
    """The program under test, and how it is driven."""

    mode: Literal["cli", "acp", "sdk"] = Field("cli", description="the baseline integration")
    command: Command
    source: Text | None = None
    lockfile: Text | None = None
    integration_level: IntegrationLevel = Field("cli_basic", description="nothing is expected beyond input and output")
    control_plane: ControlPlaneConfig = Field(default_factory=ControlPlaneConfig)
    tracing: TracingConfig = Field(default_factory=TracingConfig)
    env: dict[EnvName, str] = Field(default_factory=dict, description="no variables but the runner's own")
    secrets: Many[EnvName] = Field((), description="no secret is handed in")
    input_path: Text = Field("/in/trial_input.json", description="the path that the contract names")
    output_path: Text = Field("/out/trial_output.json", description="the path that the contract names")
    prompt: Text | None = None
    permissions: AcpPermissions | None = None
    mode_id: Text | None = None
    model: Text | None = None
    mcp_servers: Many[McpServer] | None = None
    dialect: Literal["v1", "kiro"] | None = None

    @model_validator(mode="after")
    def _acp_keys_need_acp(self) -> Self:
        acp_only = ("prompt", "permissions", "mode_id", "model", "mcp_servers", "dialect")
        stray = [name for name in acp_only if getattr(self, name) is not None]
        if self.mode != "acp" and stray:
            raise ValueError(f"{', '.join(stray)} is for mode acp only")
        return self


class NetworkConfig(Authored):
    """What the trial may reach."""

    mode: NetworkMode = Field("none", description="no network unless asked for")
    enforcement: RequestedEnforcement = Field("auto", description="the engine's own means for this mode")
    allowed_hosts: Many[Text] = Field((), description="no host is allowed")
    allowed_networks: Many[Text] = Field((), description="allowed names must resolve to global addresses")


class BudgetsConfig(Authored):
    """Limits that the runner enforces by a stop at the next step end; none unless given."""

    max_steps: Count | None = None
    max_total_tokens: Count | None = None
    max_tool_calls: Count | None = None


class TimeoutsConfig(Authored):
    """Seconds."""

    trial_seconds: Positive = Field(600, description="a trial that hangs must end")
    tool_seconds: Positive | None = None


class ResourcesConfig(Authored):
    """Limits of one trial's sandbox."""

    memory_mb: Positive = Field(512, description="enough for a small harness, little enough to run several")
    cpus: Annotated[float, Field(gt=0)] = Field(1.0, description="one core, so that parallel trials do not disturb")
    pids: Positive = Field(128, description="stops a fork bomb")
    out_mb: Positive = Field(64, description="bounds what is collected")
    workspace_mb: Positive = Field(256, description="bounds what is written")


class CheckpointsConfig(Authored):
    """When the state of a trial is saved."""

    every_steps: Positive | None = None
    at_end: bool = Field(False, description="no checkpoint unless asked for")


class CacheConfig(Authored):
    """A folder that trials find read-only at /cache."""

    path: Text


class RuntimeConfig(Authored):
    """Where and how trials run."""

    engine: EngineName = Field("auto", description="docker where an engine answers, else bubblewrap")
    image: Text | None = None
    harness: HarnessConfig
    network: NetworkConfig = Field(default_factory=NetworkConfig)
    budgets: BudgetsConfig = Field(default_factory=BudgetsConfig)
    timeouts: TimeoutsConfig = Field(default_factory=TimeoutsConfig)
    resources: ResourcesConfig = Field(default_factory=ResourcesConfig)
    checkpoints: CheckpointsConfig = Field(default_factory=CheckpointsConfig)
    cache: CacheConfig | None = None

    @model_validator(mode="before")
    @classmethod
    def _a_cache_may_be_just_a_path(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("cache"), str):
            return {**data, "cache": {"path": data["cache"]}}
        return data
