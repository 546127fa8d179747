"""RunRecord: rules R1-R10."""

from __future__ import annotations

from labaudit.contracts.rules.date_rules import date_has_an_offset, moment_at
from labaudit.contracts.rules.finding import (
    Findings,
    Json,
    at,
    error,
    is_number,
    kind_of,
    one_of,
    required_text,
    unknown_keys,
    warning,
)
from labaudit.contracts.rules.trace_rules import check_trace

STATUSES = ("pending", "running", "completed", "failed")
TASK_TYPES = ("atomic", "scenario")
STEP_STATUSES = ("completed", "failed", "skipped")
REQUIRED = ("id", "taskId", "taskType", "status", "metrics", "trace", "startedAt", "provenance")
RUN_FIELDS = frozenset([*REQUIRED, "output", "error", "steps", "completedAt"])
_METRICS = frozenset(["latency", "tokens", "cost"])
_PROVENANCE = frozenset(["runnerId", "runnerVersion", "config"])
_STEP_FIELDS = frozenset(["stepId", "stepName", "status", "latency", "output", "error"])
_ERROR_FIELDS = frozenset(["message", "step", "stack"])


def check_run(run: Json) -> Findings:
    """Every rule on one RunRecord, its trace and its dates included."""
    yield from run_has_its_fields(run)
    yield from measures_are_numbers(run)
    yield from a_started_run_has_a_trace(run)
    yield from failed_exactly_when_there_is_an_error(run)
    yield from a_failure_names_its_step(run)
    yield from steps_exactly_for_scenarios(run)
    yield from completed_means_no_failed_step(run)
    yield from completion_time_fits_the_status(run)
    yield from each_step_has_a_summary(run)
    yield from error_has_message_step_and_stack_only(run)
    yield from check_trace(run)
    yield from date_has_an_offset(run, "startedAt")
    yield from date_has_an_offset(run, "completedAt")


def run_has_its_fields(run: Json) -> Findings:
    """R1: the required fields have their types, provenance is whole, nothing else is there."""
    yield from required_text(run, ("id", "taskId"), "R1")
    yield from one_of(run, "taskType", TASK_TYPES, "R1")
    yield from one_of(run, "status", STATUSES, "R1")
    for key, kind, words in (("metrics", dict, "an object"), ("trace", list, "an array")):
        if not isinstance(run.get(key), kind):
            yield error("R1", at("$", key), f"{key} must be {words}, there is {_found(run, key)}")
    if "startedAt" not in run:
        yield error("R1", "$.startedAt", "startedAt is missing")
    provenance = run.get("provenance")
    if isinstance(provenance, dict):
        yield from required_text(provenance, ("runnerId", "runnerVersion"), "R1", "$.provenance")
        if not isinstance(provenance.get("config"), dict):
            found = _found(provenance, "config")
            yield error("R1", "$.provenance.config", f"config must be an object, there is {found}")
        yield from unknown_keys(provenance, _PROVENANCE, "R1", "$.provenance")
    else:
        yield error("R1", "$.provenance", f"provenance must be an object, there is {_found(run, 'provenance')}")
    yield from unknown_keys(run, RUN_FIELDS, "R1")


def measures_are_numbers(run: Json) -> Findings:
    """R2: latency is finite and 0 or more, tokens a count, cost 0 or more; a boolean is no number."""
    metrics = run.get("metrics")
    if not isinstance(metrics, dict):
        return
    for key in ("latency", "cost"):
        if (key == "latency" or key in metrics) and not _is_amount(metrics.get(key)):
            yield error("R2", f"$.metrics.{key}", f"{key} must be a number, 0 or more; there is {_found(metrics, key)}")
    tokens = metrics.get("tokens", 0)
    if not (_is_amount(tokens) and tokens == int(tokens)):
        yield error("R2", "$.metrics.tokens", f"tokens must be a whole number, 0 or more; there is {kind_of(tokens)}")
    yield from unknown_keys(metrics, _METRICS, "R2", "$.metrics")


def a_started_run_has_a_trace(run: Json) -> Findings:
    """R3: once a run is not pending, its trace has events."""
    if run.get("trace") == [] and run.get("status") in ("running", "completed", "failed"):
        yield error("R3", "$.trace", f"the trace of a {run['status']} run is empty", "record started and what followed")


def failed_exactly_when_there_is_an_error(run: Json) -> Findings:
    """R4: a failed run has an error, and only a failed one."""
    failed = run.get("status") == "failed"
    if failed and "error" not in run:
        yield error("R4", "$.error", "the run failed and there is no error", "say what failed, and in which step")
    if not failed and "error" in run:
        yield error("R4", "$.error", f"there is an error, but the status is {_word(run.get('status'))}")


def a_failure_names_its_step(run: Json) -> Findings:
    """R5: a scenario's failure names a step that the record lists; for an atomic task a missing one is a warning."""
    fault = run.get("error")
    if run.get("status") != "failed" or not isinstance(fault, dict):
        return
    step = fault.get("step")
    if run.get("taskType") == "scenario":
        declared = step_ids(run)
        if not isinstance(step, str) or step not in declared:
            said = repr(step[:60]) if isinstance(step, str) else "no step"
            known = "declared: " + ", ".join(sorted(declared)[:10])
            yield error("R5", "$.error.step", f"a scenario's failure names a declared step, not {said}", known)
    elif "step" not in fault:
        yield warning("R5", "$.error.step", "the error does not say in which step it happened", "add error.step")


def steps_exactly_for_scenarios(run: Json) -> Findings:
    """R6: a scenario has steps, an atomic task has none; no id twice, and after a failed step only skipped ones."""
    kind, steps = run.get("taskType"), run.get("steps")
    if kind == "scenario" and not isinstance(steps, list):
        yield error("R6", "$.steps", f"a scenario's record has an array of steps, there is {_found(run, 'steps')}")
    if kind == "atomic" and "steps" in run:
        yield error("R6", "$.steps", "an atomic task's record has no steps")
    if not isinstance(steps, list):
        return
    seen: set[str] = set()
    failed = None
    for number, step in enumerate(steps):
        if not isinstance(step, dict):
            continue
        step_id, status = step.get("stepId"), step.get("status")
        if isinstance(step_id, str):
            if step_id in seen:
                yield error("R6", f"$.steps[{number}].stepId", f"the step {step_id[:60]!r} stands twice")
            seen.add(step_id)
        if failed is not None and status in ("completed", "failed"):
            message = f"step {number} is {status} after step {failed} failed"
            yield error("R6", f"$.steps[{number}].status", message, "steps after a failed one are skipped")
        elif status == "failed":
            failed = number


def completed_means_no_failed_step(run: Json) -> Findings:
    """R7: a completed run has no failed step."""
    steps = run.get("steps")
    if run.get("status") != "completed" or not isinstance(steps, list):
        return
    for number, step in enumerate(steps):
        if isinstance(step, dict) and step.get("status") == "failed":
            yield error("R7", f"$.steps[{number}].status", "the run is completed, but this step failed")


def completion_time_fits_the_status(run: Json) -> Findings:
    """R8: completedAt is there when completed, not there when pending or running, and never before startedAt."""
    status = run.get("status")
    if status == "completed" and "completedAt" not in run:
        yield error("R8", "$.completedAt", "the run is completed and completedAt is missing")
    if "completedAt" not in run:
        return
    if status in ("pending", "running"):
        yield error("R8", "$.completedAt", f"the run is {status}, but completedAt is there")
    started, ended = moment_at(run, "startedAt"), moment_at(run, "completedAt")
    if started is not None and ended is not None and ended < started:
        yield error("R8", "$.completedAt", "completedAt is before startedAt")


def each_step_has_a_summary(run: Json) -> Findings:
    """R9: a StepSummary has stepId, stepName, status and latency; output and a string error may follow."""
    steps = run.get("steps")
    if not isinstance(steps, list):
        return
    for number, step in enumerate(steps):
        place = f"$.steps[{number}]"
        if not isinstance(step, dict):
            yield error("R9", place, f"a step summary is an object, there is {kind_of(step)}")
            continue
        yield from required_text(step, ("stepId", "stepName"), "R9", place)
        yield from one_of(step, "status", STEP_STATUSES, "R9", place)
        if not _is_amount(step.get("latency")):
            found = _found(step, "latency")
            yield error("R9", f"{place}.latency", f"latency must be a number, 0 or more; there is {found}")
        if not isinstance(step.get("error", ""), str):
            yield error("R9", f"{place}.error", f"a step's error is a string, there is {kind_of(step['error'])}")
        yield from unknown_keys(step, _STEP_FIELDS, "R9", place)


def error_has_message_step_and_stack_only(run: Json) -> Findings:
    """R10: an error has a message; step and stack are strings; there is nothing else."""
    if "error" not in run:
        return
    fault = run["error"]
    if not isinstance(fault, dict):
        yield error("R10", "$.error", f"error must be an object with a message, there is {kind_of(fault)}")
        return
    if not isinstance(fault.get("message"), str):
        yield error("R10", "$.error.message", f"message must be a string, there is {_found(fault, 'message')}")
    for key in ("step", "stack"):
        if key in fault and (not isinstance(fault[key], str) or (key == "step" and not fault[key])):
            yield error("R10", f"$.error.{key}", f"{key} must be text, there is {kind_of(fault[key])}")
    yield from unknown_keys(fault, _ERROR_FIELDS, "R10", "$.error")


def step_ids(run: Json) -> set[str]:
    """The step ids that a record lists."""
    steps = run.get("steps")
    if not isinstance(steps, list):
        return set()
    return {step["stepId"] for step in steps if isinstance(step, dict) and isinstance(step.get("stepId"), str)}


def _is_amount(value: object) -> bool:
    return is_number(value) and value >= 0  # type: ignore[operator]


def _found(record: Json, key: str) -> str:
    return kind_of(record[key]) if key in record else "nothing"


def _word(value: object) -> str:
    return repr(value[:40]) if isinstance(value, str) else kind_of(value)
