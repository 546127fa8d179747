"""What a harness reported of a scenario's steps to StepSummaries that keep the contract.

Two sources, in this order: the summaries in `trial_output.json` (`ext.scenario.steps`), then the hook events that carry
`ext.scenario_step`. Both are the harness's own report and are labelled so. What neither tells is skipped when the trial
failed, and a contradiction when it is said to have completed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labaudit.contracts.dates import parse_moment
from labaudit.contracts.rules.finding import is_number
from labaudit.contracts.scenarios.hook_stream import SCENARIO_STEP

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Steps:
    """Summaries of every declared step, in order, and where they come from."""

    summaries: list[dict[str, Any]]
    origin: str
    """`self_reported` (trial_output.json), `hooks`, or `not_observed`."""
    failed_step: str | None
    contradiction: str | None
    """Why a run that is said to have completed did not, by its own steps."""


def summarise_steps(task: Json, output: Json | None, hook_events: Sequence[Json], failure: str | None) -> Steps:
    """One summary per declared step; `failure` is the run's failure, None when it is said to have completed."""
    declared = [(str(step.get("id")), str(step.get("name"))) for step in _objects(task.get("steps"))]
    reported = _reported(output)
    origin = "self_reported"
    if not reported:
        reported = _from_hooks(hook_events)
        origin = "hooks" if reported else "not_observed"
    summaries: list[dict[str, Any]] = []
    failed: str | None = None
    for step_id, name in declared:
        claim = reported.get(step_id)
        if failed is None and claim is not None and claim["status"] != "skipped":
            summaries.append({"stepId": step_id, "stepName": name, **claim})
            failed = step_id if claim["status"] == "failed" else None
        else:
            summaries.append({"stepId": step_id, "stepName": name, "status": "skipped", "latency": 0.0})
    if failure is None:
        return Steps(summaries, origin, failed or _first(summaries, "skipped"), _contradiction(summaries))
    return Steps(_with_failed_step(summaries, failed, failure), origin, failed or _broken_off(summaries), None)


def _reported(output: Json | None) -> dict[str, dict[str, Any]]:
    """The claims of trial_output.json, each reduced to what a StepSummary may hold."""
    ext = (output or {}).get("ext")
    scenario = ext.get("scenario") if isinstance(ext, Mapping) else None
    steps = scenario.get("steps") if isinstance(scenario, Mapping) else None
    claims: dict[str, dict[str, Any]] = {}
    for step in _objects(steps):
        status, latency = step.get("status"), step.get("latency")
        if status not in ("completed", "failed", "skipped") or not isinstance(step.get("stepId"), str):
            continue
        sound = is_number(latency) and latency is not None and latency >= 0
        claim: dict[str, Any] = {"status": status, "latency": latency if sound else 0.0}
        if "output" in step:
            claim["output"] = step["output"]
        if isinstance(step.get("error"), str):
            claim["error"] = step["error"]
        claims.setdefault(step["stepId"], claim)
    return claims


def _from_hooks(hook_events: Sequence[Json]) -> dict[str, dict[str, Any]]:
    """Steps whose start and end were seen; an error event in between makes the step a failed one."""
    starts: dict[str, Any] = {}
    errors: dict[str, str] = {}
    claims: dict[str, dict[str, Any]] = {}
    for event in hook_events:
        ext = event.get("ext")
        step = ext.get(SCENARIO_STEP) if isinstance(ext, Mapping) else None
        if not isinstance(step, str):
            continue
        kind = event.get("event_type")
        if kind == "agent_step_start":
            starts.setdefault(step, event.get("ts"))
        elif kind == "error":
            errors.setdefault(step, str(event.get("message", "")))
        elif kind == "agent_step_end" and step in starts and step not in claims:
            failed = {"error": errors[step]} if step in errors else {}
            status = "failed" if failed else "completed"
            claims[step] = {"status": status, "latency": _between(starts[step], event.get("ts")), **failed}
    return claims


def _between(start: object, end: object) -> float:
    first, last = parse_moment(start), parse_moment(end)
    if first is None or last is None or last < first:
        return 0.0
    return (last.seconds - first.seconds) * 1000 + (last.nanoseconds - first.nanoseconds) / 1e6


def _contradiction(summaries: list[dict[str, Any]]) -> str | None:
    """R7: what is said to have completed has no failed step; and a step without a report did not complete."""
    for summary in summaries:
        if summary["status"] == "failed":
            return f"the harness reports an outcome, but its step {summary['stepId']!r} failed"
    silent = _first(summaries, "skipped")
    return f"the harness reports an outcome, but not that step {silent!r} completed" if silent else None


def _with_failed_step(summaries: list[dict[str, Any]], failed: str | None, failure: str) -> list[dict[str, Any]]:
    """The summaries of a failed run: the step it broke off at is the failed one."""
    if failed is not None:
        return summaries
    broken = _broken_off(summaries)
    return [
        {**summary, "status": "failed", "error": failure} if summary["stepId"] == broken else summary
        for summary in summaries
    ]


def _broken_off(summaries: list[dict[str, Any]]) -> str | None:
    """The first step that did not complete, else the last one: what failed came after it had been reported."""
    return _first(summaries, "skipped") or (summaries[-1]["stepId"] if summaries else None)


def _first(summaries: list[dict[str, Any]], status: str) -> str | None:
    return next((summary["stepId"] for summary in summaries if summary["status"] == status), None)


def _objects(value: object) -> list[Json]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
