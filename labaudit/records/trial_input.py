"""trial_input.json: what the runner tells a harness about its trial."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from labaudit.records.base import Record
from labaudit.records.fields import (
    Count,
    IntegrationLevel,
    JsonObject,
    Many,
    NetworkMode,
    Positive,
    SanitizationProfile,
    Text,
)
from labaudit.records.ids import Ids


class TrialDesign(Record):
    """Profile and expected integration level of the trial."""

    sanitization_profile: SanitizationProfile
    integration_level: IntegrationLevel


class TrialPaths(Record):
    """Where the harness finds its folders."""

    workspace: str
    state: str
    cache: str | None = None
    dataset: str
    out: str
    tmp: str


class TrialNetwork(Record):
    """The network the harness can count on."""

    mode_requested: NetworkMode
    allowed_hosts: Many[Text] | None = None


class ControlPlane(Record):
    """How the runner will speak to the harness; a path is needed for `file` only."""

    mode: Literal["file", "sdk"]
    path: Text | None = None

    @model_validator(mode="after")
    def _file_mode_needs_a_path(self) -> Self:
        if self.mode == "file" and self.path is None:
            raise ValueError("mode file needs a path")
        return self


class Budgets(Record):
    """Limits that the runner enforces from the hook stream."""

    max_steps: Count | None = None
    max_total_tokens: Count | None = None
    max_tool_calls: Count | None = None


class TrialTimeouts(Record):
    """Seconds a trial and a tool call may take."""

    trial_seconds: Positive | None = None
    tool_seconds: Positive | None = None


class TrialRuntime(Record):
    """Paths, network, control plane and limits."""

    paths: TrialPaths
    network: TrialNetwork
    control_plane: ControlPlane
    budgets: Budgets | None = None
    timeouts: TrialTimeouts | None = None


class TrialInput(Record):
    """The one document that a harness must read."""

    schema_version: Literal["trial_input_v1"] = "trial_input_v1"
    ids: Ids
    task: JsonObject
    task_schema: str | None = None
    bindings: JsonObject
    design: TrialDesign
    runtime: TrialRuntime
    ext: JsonObject | None = None
