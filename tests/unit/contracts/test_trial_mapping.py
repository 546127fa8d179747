"""A trial's facts to its records, row by row of the mapping table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from labaudit.cli import labaudit
from labaudit.contracts.module_registry import evaluators_by_type, installed_modules
from labaudit.contracts.record_check import RecordCheck
from labaudit.contracts.trial_mapping import TrialFacts, run_record_from_trial
from labaudit.contracts.trial_scores import score_records_from_metrics, score_records_from_modules
from labaudit.errors import BadInput

STEPS = [{"id": name, "name": name, "type": "t", "input": 1, "metadata": {}} for name in "ab"]
SCENARIO = {"id": "s", "name": "s", "description": "", "steps": STEPS, "input_map": {}, "metadata": {}}
FACTS = TrialFacts(
    trial_id="base.t.r0",
    task_id="t",
    task={"id": "t", "prompt": "p"},
    outcome="success",
    started_at="2026-01-01T10:00:00.000000Z",
    ended_at="2026-01-01T10:00:02.000000Z",
    latency_ms=2000.0,
    harness_name="agent",
    bindings={"temperature": 0},
    resolved_digest="sha256:" + "0" * 64,
    exec_digest="sha256:" + "1" * 64,
)


def call(tokens_in: Any, tokens_out: Any) -> dict[str, Any]:
    usage = {"tokens_in": tokens_in, "tokens_out": tokens_out}
    return {"event_type": "model_call_end", "ts": "2026-01-01T10:00:01Z", "seq": 1, "usage": usage}


def record(**changes: Any) -> dict[str, Any]:
    made = run_record_from_trial(replace(FACTS, **changes))
    check = RecordCheck()
    check.add(made, "run", kind="run")
    assert check.finish().errors == 0, check.finish().as_json()
    return made


@pytest.mark.parametrize(
    ("outcome", "status"),
    [("success", "completed"), ("failure", "completed"), ("error", "failed"), ("missing", "failed"), (None, "failed")],
)
def test_a_failed_task_is_a_score_and_only_a_broken_trial_is_a_failed_run(outcome: str | None, status: str) -> None:
    made = record(outcome=outcome)
    assert made["status"] == status
    assert ("error" in made) == (status == "failed")
    if status == "failed":
        assert made["error"]["step"] == "harness", "our own runner always names one"


def test_tokens_are_summed_only_over_a_complete_stream() -> None:
    assert record(hook_events=[call(3, 4), call(1, 1)], hooks_complete=True)["metrics"]["tokens"] == 9
    assert "tokens" not in record(hook_events=[call(3, 4)], hooks_complete=False)["metrics"]
    assert "tokens" not in record(hook_events=[call(3, None)], hooks_complete=True)["metrics"]
    assert "tokens" not in record(hook_events=[], hooks_complete=True)["metrics"]
    assert "tokens" not in record(hook_events=[call(True, 1)], hooks_complete=True)["metrics"]


def test_cost_is_labelled_as_the_harness_s_own_word() -> None:
    made = record(metrics={"metrics": {"cost_usd": 0.5}, "sources": {"cost_usd": "harness"}})
    assert made["metrics"]["cost"] == 0.5
    assert made["provenance"]["config"]["labels"]["cost"] == "self_reported"
    assert "cost" not in record(metrics={"metrics": {"cost_usd": -1}})["metrics"]
    assert "cost" not in record(metrics={"metrics": {"cost_usd": True}})["metrics"]


def test_latency_is_the_framework_s_and_a_clock_set_back_is_said() -> None:
    made = record(trial_output={"metrics": {"latency": 1}}, ended_at="2026-01-01T09:00:00Z")
    assert made["metrics"]["latency"] == 2000.0
    assert made["completedAt"] == made["startedAt"]
    assert "stepped back" in made["provenance"]["config"]["labels"]["completedAt"]


def test_the_version_falls_back_to_the_digest_of_what_was_executed() -> None:
    assert record()["provenance"]["runnerVersion"] == FACTS.exec_digest
    assert record(harness_version="2.1")["provenance"]["runnerVersion"] == "2.1"


def test_trace_events_keep_their_source_and_an_error_outcome_is_an_error_line() -> None:
    framework = {"event_type": "harness.exited", "ts": FACTS.started_at, "seq": 2, "source": "framework_events"}
    failed = {"event_type": "tool_call_end", "ts": "2026-01-01T10:00:01Z", "seq": 0, "outcome": {"status": "error"}}
    made = record(framework_events=[framework], hook_events=[failed])
    rows = {event["event"]: event for event in made["trace"]}
    assert rows["harness.exited"]["data"] == {"seq": 2, "source": "framework_events"}
    assert rows["tool_call_end"]["data"]["source"] == "hooks"
    assert rows["tool_call_end"]["level"] == "error"


def test_a_success_that_its_own_steps_deny_becomes_a_failed_run() -> None:
    steps = [{"stepId": "a", "status": "completed", "latency": 1}, {"stepId": "b", "status": "failed", "latency": 1}]
    made = record(task=SCENARIO, trial_output={"ext": {"scenario": {"steps": steps}}})
    assert made["status"] == "failed"
    assert made["error"]["step"] == "b"


def test_a_success_without_word_of_its_steps_is_not_taken_as_completed() -> None:
    made = record(task=SCENARIO, trial_output={"answer": 1})
    assert made["status"] == "failed"
    assert made["provenance"]["config"]["labels"]["steps"] == "not_observed"


def test_there_is_one_score_per_value_and_none_for_a_missing_one() -> None:
    metrics = {
        "metrics": {"success": True, "note": "ok", "cost_usd": 0.5, "gone": None, "nan": float("nan")},
        "sources": {"success": "evaluator:exact", "cost_usd": "harness", "note": "framework"},
    }
    scores = score_records_from_metrics(metrics, run_id="r", created_at="2026-01-01T10:00:00Z")
    again = score_records_from_metrics(metrics, run_id="r", created_at="2026-01-01T10:00:00Z")
    assert scores == again, "ids are deterministic"
    by_metric = {score["metric"]: score for score in scores}
    assert by_metric.keys() == {"success", "note", "cost_usd"}
    assert by_metric["success"]["evaluatorId"] == "exact"
    assert by_metric["cost_usd"]["evaluatorId"] == "harness.self_reported"
    assert by_metric["cost_usd"]["target"] == "global"
    assert by_metric["success"]["target"] == "final"


class _Broken:
    id = "broken"
    metrics = ("m",)

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def evaluate(self, run: Any, task: Any) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("answer", [ZeroDivisionError("x"), [{"id": 1}], [{"target": "step:nowhere"}]])
def test_an_evaluator_s_bug_costs_its_scores_and_is_told(answer: Any) -> None:
    task = {"id": "t", "name": "t", "type": "t", "input": 1, "metadata": {}}
    scores, problems = score_records_from_modules(task, record(task=task), {"t": _Broken(answer)})
    assert scores == []
    assert len(problems) == 1


def test_a_task_of_another_shape_has_no_module_scores() -> None:
    evaluators = evaluators_by_type(installed_modules())
    assert score_records_from_modules({"id": "t"}, record(), evaluators) == ([], [])


def run_folder(path: Path, made: dict[str, Any], score: dict[str, Any]) -> Path:
    trial = path / "trials" / "base.t.r0"
    trial.mkdir(parents=True)
    ids = {"run_id": "r", "trial_id": "base.t.r0", "variant_id": "base", "task_id": "s", "repl_idx": 0}
    (trial / "trial_input.json").write_text(json.dumps({"ids": ids, "task": SCENARIO}))
    (trial / "run_record.json").write_text(json.dumps(made))
    (trial / "score_records.jsonl").write_text(json.dumps(score) + "\n")
    return path


def test_a_run_folder_is_checked_across_its_records(tmp_path: Path) -> None:
    steps = [{"stepId": name, "status": "completed", "latency": 1} for name in "ab"]
    made = record(task=SCENARIO, task_id="s", trial_output={"answer": 1, "ext": {"scenario": {"steps": steps}}})
    metrics = {"metrics": {"success": True}, "sources": {"success": "evaluator:exact"}}
    (score,) = score_records_from_metrics(metrics, run_id=made["id"], created_at=FACTS.ended_at)

    def check(folder: Path) -> tuple[int, dict[str, int]]:
        result = CliRunner().invoke(labaudit, ["contract", "check", str(folder), "--json"])
        return result.exit_code, json.loads(result.stdout)["by_rule"]

    (tmp_path / "none" / "trials").mkdir(parents=True)
    empty = CliRunner().invoke(labaudit, ["contract", "check", str(tmp_path / "none")])
    assert isinstance(empty.exception, BadInput), "a run without trials passed nothing"
    sound = run_folder(tmp_path / "sound", made, score)
    (sound / "trials" / "lost").mkdir()
    assert check(sound) == (0, {"K2": 1}), "a trial without a record is told, not passed over"
    assert check(run_folder(tmp_path / "a", made, {**score, "runId": "elsewhere"})) == (1, {"C3": 1})
    assert check(run_folder(tmp_path / "b", made, {**score, "target": "step:z"})) == (1, {"C3": 1})
    other = {**made, "steps": made["steps"][::-1]}
    assert check(run_folder(tmp_path / "c", other, score)) == (1, {"R6": 1})
