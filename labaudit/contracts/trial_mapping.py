"""A finished trial's plain facts to its RunRecord: the table "Mapping from a trial" of the contract, row by row.

    id, taskId        trial_id, task_id
    status            success and failure are completed runs; error and missing are failed ones
    latency           the framework's own clock
    tokens            summed over model_call_end when the hook stream is complete, else absent
    cost              the metric cost_usd, labelled with its source, else absent
    trace             framework and hook events; data keeps seq, payload_ref and evidence source
    provenance        harness name, its version or exec_digest, bindings and resolved digest

Whatever a harness wrote, the record keeps its contract: claims that contradict each other become a failed run that says
so. Where a figure comes from stands in `provenance.config.labels`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from labaudit.contracts.dates import parse_moment
from labaudit.contracts.rules.finding import is_number
from labaudit.contracts.scenarios.executor import is_scenario
from labaudit.contracts.step_summaries import Steps, summarise_steps
from labaudit.contracts.trial_trace import trace_of_trial

SELF_REPORTED = "harness.self_reported"
FRAMEWORK_EVALUATOR = "framework"
COST_METRIC = "cost_usd"
ACP_METRICS = ("acp_prompt_turns", "acp_tool_calls", "acp_updates", "acp_permission_requests", "acp_stop_reason")
"""What the ACP bridge reports of every trial, whether the experiment asks for it or not."""
COMPLETED = ("success", "failure")
Json = Mapping[str, Any]


@dataclass(frozen=True)
class TrialFacts:
    """What the runner knows of a trial when it has ended; every text and value is already redacted."""

    trial_id: str
    task_id: str
    task: Json
    outcome: str | None
    """success, failure, missing or error; None for a lost trial."""
    started_at: str
    ended_at: str
    latency_ms: float
    """From start to end of the sandbox, by the framework's monotonic clock."""
    harness_name: str
    bindings: Json
    resolved_digest: str
    harness_version: str | None = None
    exec_digest: str | None = None
    metrics: Json = field(default_factory=dict)
    """The whole metrics.json."""
    trial_output: Json | None = None
    hook_events: Sequence[Json] = ()
    """The validated hook stream; empty when it is invalid, so that nothing is counted from it."""
    hooks_complete: bool = False
    framework_events: Sequence[Json] = ()
    error_message: str | None = None
    """Why there is no outcome, where the framework knows better than the harness (timeout, lost sandbox)."""
    failed_stage: str = "harness"
    """For an atomic task: where it failed."""


def run_record_from_trial(facts: TrialFacts) -> dict[str, Any]:
    """The RunRecord of a trial; for a task that keeps its own contract it satisfies every rule R, V and D."""
    scenario = is_scenario(facts.task)
    status = "completed" if facts.outcome in COMPLETED else "failed"
    failure = None if status == "completed" else _failure_message(facts)
    steps = summarise_steps(facts.task, facts.trial_output, facts.hook_events, failure) if scenario else None
    if steps is not None and steps.contradiction:
        status, failure = "failed", steps.contradiction
    tokens = _tokens(facts)
    cost, cost_label = _cost(facts.metrics)
    step_ids = frozenset(summary["stepId"] for summary in steps.summaries) if steps is not None else frozenset()
    labels = _labels(steps, tokens, cost_label)
    ended = _end(facts, labels)
    record: dict[str, Any] = {
        "id": facts.trial_id,
        "taskId": facts.task_id,
        "taskType": "scenario" if scenario else "atomic",
        "status": status,
        "metrics": {
            "latency": max(0.0, float(facts.latency_ms)),
            **({"tokens": tokens} if tokens is not None else {}),
            **({"cost": cost} if cost is not None else {}),
        },
        "trace": trace_of_trial(facts.framework_events, facts.hook_events, facts.started_at, ended, status, step_ids),
        "startedAt": facts.started_at,
        "completedAt": ended,
        "provenance": {
            "runnerId": facts.harness_name or "unknown",
            "runnerVersion": facts.harness_version or facts.exec_digest or "unknown",
            "config": {
                "bindings": dict(facts.bindings),
                "resolved_digest": facts.resolved_digest,
                "outcome": facts.outcome,
                "labels": labels,
            },
        },
    }
    if steps is not None:
        record["steps"] = steps.summaries
    if failure is not None:
        # A scenario's failure names a declared step (R5); our own records always name one.
        step = steps.failed_step if steps is not None and steps.failed_step else facts.failed_stage
        record["error"] = {"message": failure, "step": step}
    elif facts.trial_output is not None and "answer" in facts.trial_output:
        record["output"] = facts.trial_output["answer"]
    return record


def _failure_message(facts: TrialFacts) -> str:
    if facts.error_message:
        return facts.error_message
    fault = (facts.trial_output or {}).get("error")
    message = fault.get("message") if isinstance(fault, Mapping) else None
    if isinstance(message, str) and message:
        return message
    return f"the trial's outcome is {facts.outcome or 'lost'}"


def _tokens(facts: TrialFacts) -> int | None:
    """The sum over model_call_end. A stream with gaps, a call without usage, or no call at all is no count."""
    if not facts.hooks_complete:
        return None
    calls = [event for event in facts.hook_events if event.get("event_type") == "model_call_end"]
    total = 0
    for call in calls:
        usage = call.get("usage")
        counts = [usage.get(key) for key in ("tokens_in", "tokens_out")] if isinstance(usage, Mapping) else [None]
        for count in counts:
            if type(count) is not int:
                return None
            total += count
    return total if calls else None


def _cost(metrics: Json) -> tuple[float | None, str]:
    values, sources = metrics.get("metrics"), metrics.get("sources")
    cost = values.get("cost_usd") if isinstance(values, Mapping) else None
    if not (is_number(cost) and cost is not None and cost >= 0):
        return None, "absent"
    source = sources.get("cost_usd") if isinstance(sources, Mapping) else None
    return cost, "self_reported" if source in (None, "harness") else str(source)


def _labels(steps: Steps | None, tokens: int | None, cost_label: str) -> dict[str, str]:
    labels = {
        "latency": "framework_events",
        "tokens": "hooks" if tokens is not None else "absent",
        "cost": cost_label,
        "output": "self_reported",
    }
    if steps is not None:
        labels["steps"] = steps.origin
    return labels


def _end(facts: TrialFacts, labels: dict[str, str]) -> str:
    started, ended = parse_moment(facts.started_at), parse_moment(facts.ended_at)
    if started is not None and ended is not None and ended < started:
        # The wall clock was set back during the trial; the latency comes from a clock that cannot be.
        labels["completedAt"] = "the wall clock stepped back; startedAt is shown"
        return facts.started_at
    return facts.ended_at
