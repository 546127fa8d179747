"""The scenario executor and the example modules: what moves between steps, and what a failure leaves behind."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from labaudit.contracts.module_registry import evaluators_by_type, installed_modules, load_modules, runners_by_type
from labaudit.contracts.record_check import RecordCheck
from labaudit.contracts.scenarios.clocks import WoundClock
from labaudit.contracts.scenarios.executor import Provenance, StepCall, StepFailed, StepResult, execute
from labaudit.contracts.scenarios.harness import with_time_limit
from labaudit.contracts.scenarios.module import Evaluator, FunctionRunner, Runner, step_runner
from labaudit.contracts.scenarios.plan import ScenarioInvalid
from labaudit.contracts.scenarios.scoring import score_run
from labaudit.errors import BadInput

TOP = Path(__file__).resolve().parents[3]
BOOKING = [json.loads(line) for line in (TOP / "examples/booking/tasks.jsonl").read_text(encoding="utf-8").splitlines()]


def scenario(flow: dict[str, list[tuple[str, str]]], *names: str, **fields: Any) -> dict[str, Any]:
    steps = [{"id": name, "name": name, "type": "t", "input": {}, "metadata": {}} for name in names or "abc"]
    input_map = {step: [{"from": a, "to": b} for a, b in entries] for step, entries in flow.items()}
    return {"id": "s", "name": "s", "description": "", "steps": steps, "input_map": input_map, "metadata": {}, **fields}


def run(task: dict[str, Any], run_step: Any) -> dict[str, Any]:
    clock = WoundClock(datetime(2026, 1, 1, tzinfo=UTC))
    record = execute(task, run_step, run_id="run", provenance=Provenance("runner", "1"), clock=clock)
    check = RecordCheck()
    check.add(task, "task")
    check.add(record, "run", kind="run")
    report = check.finish()
    assert report.errors == 0, report.as_json()
    return record


def echo(call: StepCall) -> StepResult:
    return StepResult({"from": call.task["id"], "got": call.task["input"]})


def test_values_move_by_the_dot_grammar_and_the_keyword_previous() -> None:
    flow = {"b": [("step:a.output.from", "input.deep.word")], "c": [("step:previous.output.got.deep", "input.all")]}
    record = run(scenario(flow), echo)
    assert record["output"]["got"] == {"all": {"word": "a"}}


def test_the_scenario_s_own_input_is_read_from_its_metadata() -> None:
    metadata = {"scenarioInput": {"city": ["Oslo"]}}
    record = run(scenario({"a": [("input:city.0", "input.city")]}, "a", metadata=metadata), echo)
    assert record["output"]["got"] == {"city": "Oslo"}


def test_a_null_moves_and_an_absent_value_fails_the_step() -> None:
    task = scenario({"b": [("step:a.output.x", "input.x")]}, "a", "b")
    assert run(task, lambda call: StepResult({"x": None, "got": call.task["input"]}))["output"]["got"] == {"x": None}
    record = run(task, lambda call: StepResult({}))
    assert record["status"] == "failed"
    assert record["error"]["step"] == "b"
    assert record["error"]["message"].startswith("S4")


def test_steps_after_a_failure_are_skipped_and_the_error_names_its_step() -> None:
    def run_step(call: StepCall) -> StepResult:
        if call.task["id"] == "b":
            raise ValueError("no luck")
        return StepResult(1)

    record = run(scenario({}), run_step)
    assert [step["status"] for step in record["steps"]] == ["completed", "failed", "skipped"]
    assert record["error"] == {"message": "ValueError: no luck", "step": "b"}
    assert [event["event"] for event in record["trace"]] == [
        *("started", "step_started", "step_completed", "step_started", "step_failed", "step_skipped", "failed")
    ]


def test_a_step_cannot_change_what_another_step_gave() -> None:
    def run_step(call: StepCall) -> StepResult:
        if call.task["id"] != "a":
            call.task["input"]["x"].append("mine")
            return StepResult(len(call.task["input"]["x"]))
        return StepResult({"x": [1]})

    task = scenario({"b": [("step:a.output.x", "input.x")], "c": [("step:a.output.x", "input.x")]})
    assert run(task, run_step)["output"] == 2


@pytest.mark.parametrize("output", [float("nan"), {1, 2}, "\ud800", {"a": object()}])
def test_an_output_that_is_no_json_fails_its_step(output: Any) -> None:
    record = run(scenario({}, "a"), lambda call: StepResult(output))
    assert (record["status"], record["error"]["step"]) == ("failed", "a")
    json.dumps(record, allow_nan=False).encode()


def test_a_scenario_that_cannot_be_planned_names_every_problem() -> None:
    task = scenario({"a": [("step:b.output", "input")], "b": [("step:a:x", "out")]}, "a", "b")
    with pytest.raises(ScenarioInvalid) as caught:
        execute(task, echo, run_id="r", provenance=Provenance("p", "1"))
    assert [problem.rule for problem in caught.value.problems] == ["S3", "S4"]
    assert "colon form" in caught.value.problems[1].hint


def test_a_timeout_bounds_a_step_that_would_not_end() -> None:
    task = scenario({}, "a", "b")
    task["steps"][0]["metadata"] = {"timeout": 50}

    def stubborn(call: StepCall) -> StepResult:
        while True:
            try:
                time.sleep(5)
            except Exception:
                continue

    begun = time.monotonic()
    record = run(task, with_time_limit(stubborn))
    assert time.monotonic() - begun < 2
    assert record["error"] == {"message": "stopped at its timeout of 50.0 ms", "step": "a"}
    assert [step["status"] for step in record["steps"]] == ["failed", "skipped"]


def test_a_type_without_a_module_is_a_failure_that_lists_the_known_ones() -> None:
    record = run(scenario({}, "a"), step_runner(runners_by_type(installed_modules()), {}))
    assert "dialogue, intent, memory" in record["error"]["message"]


@pytest.mark.parametrize("task", BOOKING, ids=lambda task: task["id"])
def test_every_booking_scenario_runs_end_to_end_and_its_records_keep_their_contract(task: dict[str, Any]) -> None:
    modules = installed_modules()
    record = run(task, step_runner(runners_by_type(modules), {"intent_min_confidence": 0.5}))
    scores = score_run(task, record, evaluators_by_type(modules))
    check = RecordCheck()
    for value in (task, record, *scores):
        check.add(value, "record")
    report = check.finish()
    assert (report.errors, report.warnings) == (0, 0), report.as_json()
    targets = {score["target"] for score in scores}
    assert targets >= {"final", "global", f"step:{task['steps'][0]['id']}"}
    assert len({score["id"] for score in scores}) == len(scores)


def test_the_seed_s_booking_scenario_gives_the_expected_conversation() -> None:
    record = run(BOOKING[0], step_runner(runners_by_type(installed_modules()), {}))
    assert record["steps"][0]["output"]["intent"] == "book_flight"
    assert record["output"]["entries"][0]["text"] == "请问您要去哪里？"


def test_modules_are_runners_and_evaluators_by_the_interfaces() -> None:
    for module in installed_modules().values():
        assert isinstance(module.runner, Runner)
        assert isinstance(module.evaluator, Evaluator)


def test_a_runner_s_failure_is_a_record_with_a_stack() -> None:
    def process(task: Any, config: Any) -> Any:
        raise StepFailed("bad luck") if config else KeyError("x")

    task = {"id": "t", "name": "t", "type": "t", "input": 1, "metadata": {}}
    record = FunctionRunner("t", "1", process).execute(task, {})
    assert record["status"] == "failed"
    assert "KeyError" in record["error"]["stack"]


class _Point:
    def __init__(self, name: str, load: Any) -> None:
        self.name, self.value, self.load = name, "somewhere:OBJECT", load


def test_an_entry_point_that_cannot_be_used_is_named() -> None:
    def broken() -> Any:
        raise SyntaxError("no")

    for load in (broken, lambda: 7):
        with pytest.raises(BadInput, match="entry point mine"):
            load_modules([_Point("mine", load)])  # type: ignore[list-item]


def test_two_modules_for_one_type_are_refused() -> None:
    module = installed_modules()["intent"]
    other = type(module)(module.type, "2", module.runner, module.evaluator)
    with pytest.raises(BadInput, match="two modules"):
        load_modules([_Point("a", lambda: module), _Point("b", lambda: other)])  # type: ignore[list-item]
