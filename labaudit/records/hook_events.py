"""One line of harness_events.jsonl: what a harness says happened inside it.

Streams are validated in bulk by `schema_registry`; these records are for code that makes or reads single events.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, TypeAdapter, ValidationError

from labaudit.records.base import FROM_JSON, NULL_IS_A_VALUE, Record, refusal
from labaudit.records.fields import (
    ArtifactRef,
    ControlAction,
    Count,
    DigestText,
    IntegrationLevel,
    JsonObject,
    RedactionMode,
    Text,
    Timestamp,
)
from labaudit.records.ids import Ids


class HookRedaction(Record):
    """What the harness says about its own redaction."""

    applied: bool | None = None
    mode: RedactionMode | None = None


class ModelIdentity(Record):
    """Which model was called, and the digest of the parameters."""

    identity: Text | None = None
    params_digest: DigestText | None = None


class Usage(Record):
    """Tokens of one model call."""

    tokens_in: Count | None = None
    tokens_out: Count | None = None


class Timing(Record):
    """How long a call waited and ran."""

    queue_wait_ms: Count | None = None
    duration_ms: Count | None = None


class CallOutcome(Record):
    """How a model or tool call ended."""

    status: Literal["ok", "error"]
    error_type: str | None = None
    message: str | None = None


class ToolIdentity(Record):
    """Which tool was called."""

    name: Text
    version: str | None = None


class SpentBudgets(Record):
    """What a harness says it has spent up to a step's end."""

    steps: Count | None = None
    tokens_in: Count | None = None
    tokens_out: Count | None = None
    tool_calls: Count | None = None


class _Event(Record):
    ts: Timestamp
    seq: Count
    ids: Ids
    hooks_schema_version: Literal["hook_events_v1"] | None = None
    payload_ref: ArtifactRef | None = None
    redaction: HookRedaction | None = None
    ext: JsonObject | None = None


class _InAStep(_Event):
    step_index: Count


class _PerhapsInAStep(_Event):
    step_index: Annotated[Count | None, NULL_IS_A_VALUE] = None


class HooksHeader(_PerhapsInAStep):
    """The optional first line; it must say what the manifest says."""

    event_type: Literal["hooks.header"] = "hooks.header"
    hooks_schema_version: Literal["hook_events_v1"] = "hook_events_v1"
    step_semantics: Text
    integration_level: IntegrationLevel
    manifest_digest: DigestText | None = None


class AgentStepStart(_InAStep):
    """A step begins."""

    event_type: Literal["agent_step_start"] = "agent_step_start"


class AgentStepEnd(_InAStep):
    """A step ends; the harness now looks at the control plane."""

    event_type: Literal["agent_step_end"] = "agent_step_end"
    budgets: SpentBudgets | None = None


class ControlAck(_InAStep):
    """What the harness read from the control plane after a step."""

    event_type: Literal["control_ack"] = "control_ack"
    control_version: DigestText
    control_seq: Count | None = None
    action_observed: ControlAction
    action_taken: ControlAction | None = None
    reason: str | None = None


class ModelCallEnd(_PerhapsInAStep):
    """A model call came back."""

    event_type: Literal["model_call_end"] = "model_call_end"
    call_id: Text
    turn_index: Count | None = None
    model: ModelIdentity | None = None
    usage: Usage | None = None
    timing: Timing | None = None
    attempt_index: Count | None = None
    outcome: CallOutcome


class ToolCallEnd(_PerhapsInAStep):
    """A tool call came back."""

    event_type: Literal["tool_call_end"] = "tool_call_end"
    call_id: Text
    tool: ToolIdentity
    timing: Timing | None = None
    attempt_index: Count | None = None
    outcome: CallOutcome


class ErrorEvent(_PerhapsInAStep):
    """Something went wrong inside the harness."""

    event_type: Literal["error"] = "error"
    error_type: str | None = None
    message: Text
    stack: str | None = None


HookEvent = HooksHeader | AgentStepStart | AgentStepEnd | ControlAck | ModelCallEnd | ToolCallEnd | ErrorEvent

_ADAPTER: TypeAdapter[HookEvent] = TypeAdapter(Annotated[HookEvent, Discriminator("event_type")])


def hook_event_from_json(value: object, *, where: str = "") -> HookEvent:
    """The hook event of a parsed JSON value, or BadInput naming file and place."""
    try:
        return _ADAPTER.validate_python(value, context=FROM_JSON)
    except ValidationError as error:
        raise refusal(error, where=where) from error
