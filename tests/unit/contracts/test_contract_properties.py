"""No input makes the adapter or the checker raise anything but their own errors."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from labaudit.contracts.a2a.convert import convert_packet, event_bytes
from labaudit.contracts.a2a.errors import AdapterError
from labaudit.contracts.a2a.evidence import events_from_packets
from labaudit.contracts.a2a.packet import Options
from labaudit.contracts.file_check import add_bytes
from labaudit.contracts.record_check import RecordCheck
from labaudit.contracts.scenarios.clocks import WoundClock
from labaudit.contracts.scenarios.executor import Provenance, StepCall, StepResult, execute
from labaudit.contracts.scenarios.plan import ScenarioInvalid
from labaudit.contracts.trial_mapping import TrialFacts, run_record_from_trial
from labaudit.records.schema_registry import validate

START = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = [
    *("protocol", "version", "event_type", "timestamp", "agent", "task", "artifact", "message", "attributes", "id"),
    *("kind", "role", "status", "capabilities", "name", "type", "input", "metadata", "steps", "input_map", "trace"),
    *("taskId", "taskType", "metrics", "latency", "startedAt", "completedAt", "provenance", "error", "target", "value"),
    *("runId", "metric", "evaluatorId", "createdAt", "evidence", "description", "level", "event", "stepId", "step"),
]
WORDS = [
    *("a2a", "0.2", "task.requested", "task.updated", "delegation", "unknown-task", "scenario", "atomic", "completed"),
    *("failed", "running", "step:a.output", "input.x", "final", "step:", "2024-01-01T10:00:00Z"),
]
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(WORDS), st.text(max_size=8))
keys = st.one_of(st.sampled_from(KEYS), st.text(max_size=5))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=8)),
    max_leaves=25,
)
packets = st.builds(
    lambda rest, known: {**rest, **known},
    st.dictionaries(keys, values, max_size=6),
    st.fixed_dictionaries({"protocol": st.just("a2a"), "version": st.sampled_from(["0.2", "0.3.1", "1.0"])}),
)


def as_bytes(value: Any) -> bytes:
    # Python's writer lets NaN, infinities and lone surrogates through: exactly what must be met with an own error.
    return json.dumps(value).encode()


documents = st.one_of(values.map(as_bytes), packets.map(as_bytes), st.binary(max_size=60))
modes = st.sampled_from(["strict", "lenient"])
caps = st.one_of(st.none(), st.integers(0, 40))


@given(documents, modes, caps, caps, caps, st.one_of(st.none(), st.text(max_size=5)))
def test_the_adapter_raises_only_its_own_errors_and_what_it_emits_is_valid(
    data: bytes, mode: Any, size: int | None, depth: int | None, length: int | None, hint: str | None
) -> None:
    options = Options(mode, size, depth, length, hint)
    try:
        event = convert_packet(data, options)
    except AdapterError:
        return
    line = event_bytes(event)
    assert event_bytes(convert_packet(data, options)) == line
    assert validate("a2a_event_v1", json.loads(line)) == []


@given(packets)
def test_only_a_typed_delegation_request_shows_a_handoff(packet: dict[str, Any]) -> None:
    task = packet.get("task")
    kind = task.get("kind") if isinstance(task, dict) else None
    positive = packet.get("event_type") == "task.requested" and kind == "delegation"
    try:
        event: Any = convert_packet(as_bytes(packet), Options(mode="lenient"))
    except AdapterError:
        return
    assert event["payload"]["handoff"]["visible"] is positive
    if not positive:
        assert event["payload"]["handoff"]["source_kind"] == "unknown"


@given(st.lists(documents, max_size=4))
def test_a_trial_s_packets_are_all_accounted_for(lines: list[bytes]) -> None:
    lines = [line.replace(b"\n", b" ") for line in lines]
    evidence = events_from_packets(lines)
    filled = [line for line in lines if line.strip()]
    assert len(evidence.events) + len(evidence.refused) == len(filled)


@given(documents, st.sampled_from([None, "task", "scenario", "run", "score"]))
def test_the_checker_raises_nothing_whatever_it_is_given(data: bytes, kind: Any) -> None:
    check = RecordCheck(kind=kind)
    add_bytes(check, data, "document")
    report = check.finish()
    assert report.exit_code in (0, 1, 2)
    json.dumps(report.as_json()).encode()


references = st.sampled_from(
    ["step:a.output", "step:b.output.x", "step:previous.output.0", "input:x", "input:x.y", "step:a", "step:c.output"]
)
targets = st.sampled_from(["input", "input.x", "input.x.y", "input..", "out", "input.__proto__"])
flows = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.lists(st.fixed_dictionaries({"from": references, "to": targets}), max_size=3),
    max_size=3,
)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text("xy0", max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("xy0"), inner, max_size=3)),
    max_leaves=8,
)


@given(flows, st.lists(json_values, min_size=3, max_size=3), json_values, st.integers(0, 4))
def test_every_scenario_that_can_be_planned_gives_a_record_that_keeps_its_contract(
    flow: dict[str, Any], outputs: list[Any], given_input: Any, failing: int
) -> None:
    steps = [{"id": name, "name": name, "type": "t", "input": {}, "metadata": {}} for name in "abc"]
    metadata = {"scenarioInput": given_input}
    task = {"id": "s", "name": "s", "description": "", "steps": steps, "input_map": flow, "metadata": metadata}

    def run_step(call: StepCall) -> StepResult:
        if call.index == failing:
            raise RuntimeError("as asked")
        return StepResult(outputs[call.index])

    try:
        record = execute(task, run_step, run_id="r", provenance=Provenance("p", "1"), clock=WoundClock(START))
    except ScenarioInvalid:
        return
    check = RecordCheck()
    check.add(record, "record", kind="run")
    report = check.finish()
    assert (report.errors, report.warnings) == (0, 0), report.as_json()


@given(st.sampled_from(["success", "failure", "missing", "error", None]), values, st.lists(values, max_size=4))
def test_whatever_a_harness_claims_the_mapped_record_keeps_its_contract(
    outcome: str | None, claims: Any, hooks: list[Any]
) -> None:
    steps = [{"id": name, "name": name, "type": "t", "input": 1, "metadata": {}} for name in "ab"]
    task = {"id": "s", "name": "s", "description": "", "steps": steps, "input_map": {}, "metadata": {}}
    facts = TrialFacts(
        trial_id="t",
        task_id="s",
        task=task,
        outcome=outcome,
        started_at="2024-01-01T10:00:00Z",
        ended_at="2024-01-01T10:00:05Z",
        latency_ms=5000.0,
        harness_name="h",
        bindings={},
        resolved_digest="sha256:" + "0" * 64,
        metrics=claims if isinstance(claims, dict) else {},
        trial_output={"ext": {"scenario": {"steps": claims}}},
        hook_events=[event for event in hooks if isinstance(event, dict)],
        hooks_complete=True,
    )
    check = RecordCheck()
    check.add(run_record_from_trial(facts), "record", kind="run")
    assert check.finish().errors == 0
