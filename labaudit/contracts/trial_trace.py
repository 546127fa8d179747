"""Framework events and hook events of a trial to one trace in time order, from `started` to `completed` or `failed`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labaudit.contracts.dates import Moment, parse_moment
from labaudit.contracts.scenarios.hook_stream import SCENARIO_STEP

MAX_EVENTS = 10_000
_BAD_ENDINGS = ("error", "failed", "lost", "timeout")
Json = Mapping[str, Any]


def trace_of_trial(
    framework_events: Sequence[Json],
    hook_events: Sequence[Json],
    started_at: str,
    ended_at: str,
    status: str,
    step_ids: frozenset[str],
) -> list[dict[str, Any]]:
    """The trace. Times are as recorded: a harness whose clock is off shows as a trace that is out of order (V1)."""
    # Hook events that the framework copied into its own log are not told twice.
    own = [event for event in framework_events if not (hook_events and event.get("source") == "hooks")]
    rows = [_row(event, str(event.get("source", "framework_events")), step_ids) for event in own]
    rows += [_row(event, "hooks", step_ids) for event in hook_events]
    sound = [row for row in rows if row is not None]
    sound.sort(key=lambda row: row[0])
    began, over = _span(own, started_at, ended_at)
    trace: list[dict[str, Any]] = [{"timestamp": began, "level": "info", "event": "started"}]
    trace += [event for _, event in sound[:MAX_EVENTS]]
    left_out = len(rows) - min(len(sound), MAX_EVENTS)
    if left_out:
        data = {"events": left_out, "kept_in": ["events.jsonl", "harness_events.jsonl"]}
        trace.append({"timestamp": over, "level": "warn", "event": "trace_shortened", "data": data})
    level = "info" if status == "completed" else "error"
    trace.append({"timestamp": over, "level": level, "event": status})
    return trace


def _span(framework_events: Sequence[Json], started_at: str, ended_at: str) -> tuple[str, str]:
    """From the framework's first event to its last: the trial begins before its sandbox and ends after it.

    Only the framework's own clock moves these ends; a harness's clock that is off still shows as out of order.
    """
    first, last = (parse_moment(started_at), started_at), (parse_moment(ended_at), ended_at)
    for event in framework_events:
        moment = parse_moment(event.get("ts"))
        if moment is None or event.get("source", "framework_events") != "framework_events":
            continue
        if first[0] is None or moment < first[0]:
            first = (moment, event["ts"])
        if last[0] is None or moment > last[0]:
            last = (moment, event["ts"])
    return first[1], last[1]


def _row(event: Json, source: str, step_ids: frozenset[str]) -> tuple[Moment, dict[str, Any]] | None:
    """One trace event with its moment; None for an event without a time or a name."""
    moment, name = parse_moment(event.get("ts")), event.get("event_type")
    if moment is None or not isinstance(name, str) or not name:
        return None
    data: dict[str, Any] = {"seq": event.get("seq"), "source": source}
    if isinstance(event.get("payload_ref"), str):
        data["payload_ref"] = event["payload_ref"]
    row: dict[str, Any] = {"timestamp": event["ts"], "level": _level(event, name), "event": name, "data": data}
    ext = event.get("ext")
    step = ext.get(SCENARIO_STEP) if isinstance(ext, Mapping) else None
    # The scenario's step id, never step_index: an index says nothing about which step was meant.
    if isinstance(step, str) and step in step_ids:
        row["step"] = step
    return moment, row


def _level(event: Json, name: str) -> str:
    outcome = event.get("outcome")
    failed = isinstance(outcome, Mapping) and outcome.get("status") == "error"
    if failed or name.endswith(_BAD_ENDINGS):
        return "error"
    return "debug" if name == "control_ack" else "info"
