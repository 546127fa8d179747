"""The trace of a RunRecord: rules V1 and V2."""

from __future__ import annotations

from typing import Any

from labaudit.contracts.dates import Moment, parse_moment
from labaudit.contracts.rules.finding import (
    Findings,
    Json,
    error,
    kind_of,
    one_of,
    required_text,
    unknown_keys,
    warning,
)

LEVELS = ("info", "debug", "warn", "error")
_FIELDS = frozenset(["timestamp", "level", "step", "event", "data"])


def check_trace(run: Json) -> Findings:
    """Every V rule on the trace of one RunRecord."""
    trace = run.get("trace")
    if isinstance(trace, list) and trace:
        yield from each_event_has_time_level_and_name(trace, run)
        yield from started_first_and_ended_last(trace, run)


def each_event_has_time_level_and_name(trace: list[Any], run: Json) -> Findings:
    """V1: timestamp, level and event; step only in scenarios; out of order is a warning."""
    atomic = run.get("taskType") == "atomic"
    declared = _declared(run)
    latest: Moment | None = None
    disordered = None
    for number, event in enumerate(trace):
        place = f"$.trace[{number}]"
        if not isinstance(event, dict):
            yield error("V1", place, f"a trace event is an object, there is {kind_of(event)}")
            continue
        moment = parse_moment(event.get("timestamp"))
        if moment is None:
            yield from _no_moment(event, place)
        elif latest is not None and moment < latest:
            disordered = disordered or number
        else:
            latest = moment
        if event.get("level") not in LEVELS or not event.get("event") or not isinstance(event["event"], str):
            yield from one_of(event, "level", LEVELS, "V1", place)
            yield from required_text(event, ("event",), "V1", place)
        if "step" in event:
            yield from _step_fits(event["step"], place, atomic, declared)
        if not event.keys() <= _FIELDS:
            yield from unknown_keys(event, _FIELDS, "V1", place)
    if disordered is not None:
        yield warning("V1", f"$.trace[{disordered}].timestamp", "this event is earlier than one before it")


def started_first_and_ended_last(trace: list[Any], run: Json) -> Findings:
    """V2: the first event is started; the last one of a run that ended tells how (a warning)."""
    if _name(trace[0]) != "started":
        yield warning("V2", "$.trace[0].event", "the first event of a trace is started")
    status = run.get("status")
    if status in ("completed", "failed") and _name(trace[-1]) != status:
        yield warning("V2", f"$.trace[{len(trace) - 1}].event", f"the last event of a {status} run is {status}")


def _no_moment(event: Json, place: str) -> Findings:
    if "timestamp" not in event:
        yield error("V1", f"{place}.timestamp", "timestamp is missing")
        return
    value = event["timestamp"]
    found = repr(value[:40]) if isinstance(value, str) else kind_of(value)
    hint = "for example 2026-11-18T07:00:00Z"
    yield error("D1", f"{place}.timestamp", f"timestamp must be RFC 3339 with an offset, there is {found}", hint)


def _step_fits(step: object, place: str, atomic: bool, declared: frozenset[str] | None) -> Findings:
    if atomic:
        yield error("V1", f"{place}.step", "an atomic task's trace has no steps", "leave step out")
    elif not (isinstance(step, str) and step):
        yield error("V1", f"{place}.step", f"step must be a non-empty string, there is {kind_of(step)}")
    elif declared is not None and step not in declared:
        yield warning("V1", f"{place}.step", f"the record lists no step {step[:60]!r}")


def _declared(run: Json) -> frozenset[str] | None:
    steps = run.get("steps")
    if not isinstance(steps, list):
        return None
    return frozenset(
        step["stepId"] for step in steps if isinstance(step, dict) and isinstance(step.get("stepId"), str)
    )


def _name(event: object) -> object:
    return event.get("event") if isinstance(event, dict) else None
