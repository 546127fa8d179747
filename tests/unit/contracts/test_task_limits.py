"""What real trials make of the contract: a task's own timeout bounds its run, a failure keeps its own words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from labaudit.contracts.task_limits import START_GRACE_S, trial_seconds_for
from tests.experiments import document, only_trial, run, write_experiment

TASK: dict[str, Any] = {"id": "t", "name": "n", "type": "t", "input": None, "metadata": {"timeout": 1500}}
SCENARIO: dict[str, Any] = {
    "id": "s",
    "name": "n",
    "description": "d",
    "steps": [{**TASK, "metadata": {}}],
    "input_map": {},
    "metadata": {"timeout": 1500},
}


@pytest.mark.parametrize("task", [TASK, SCENARIO])
def test_a_task_s_timeout_is_the_tighter_limit_or_none(task: dict[str, Any]) -> None:
    assert trial_seconds_for(task, 600.0) == 1.5 + START_GRACE_S
    assert trial_seconds_for(task, 3.0) == 3.0, "the experiment's limit is never widened"
    assert trial_seconds_for({**task, "metadata": {}}, 600.0) == 600.0
    assert trial_seconds_for({**task, "metadata": {"timeout": 0}}, 600.0) == START_GRACE_S


@pytest.mark.parametrize(
    "task",
    [
        {"id": "own shape", "metadata": {"timeout": 1}},
        {**TASK, "benchmark": "has fields of its own"},
        {**TASK, "metadata": {"timeout": True}},
        {**TASK, "metadata": {"timeout": -1}},
        {**TASK, "metadata": {"timeout": "1500"}},
        {**SCENARIO, "steps": []},
        {**TASK, "metadata": None},
    ],
)
def test_what_is_no_task_of_the_contract_has_no_timeout_in_milliseconds(task: dict[str, Any]) -> None:
    assert trial_seconds_for(task, 600.0) == 600.0


def test_the_runner_ends_a_task_that_outlives_its_timeout(tmp_path: Path) -> None:
    write_experiment(
        tmp_path,
        agent="import time\nwhile True: time.sleep(1)\n",
        tasks=[{**TASK, "metadata": {"timeout": 50}}],
        variants=(),
        runtime={"timeouts": {"trial_seconds": 600}},
    )
    trial, _ = only_trial(run(tmp_path).run)
    record = document(trial.run_record)
    assert record["status"] == "failed"
    assert "timeout" in record["error"]["message"]
    assert record["metrics"]["latency"] < 60_000, "the experiment alone would have let it run for ten minutes"


FAILING = """
import json, os
given = json.load(open(os.environ["LABAUDIT_TRIAL_INPUT"]))
error = {"error_type": "quota", "message": "the model said no"}
result = {"schema_version": "trial_output_v1", "ids": given["ids"], "outcome": "error", "error": error}
json.dump(result, open(given["runtime"]["paths"]["out"] + "/trial_output.json", "w"))
"""


@pytest.mark.parametrize(
    ("agent", "message"),
    [(FAILING, "the model said no"), ("raise SystemExit(3)", "it ended with exit code 3; the harness wrote no")],
)
def test_a_failed_run_says_what_the_one_who_knows_said(tmp_path: Path, agent: str, message: str) -> None:
    write_experiment(tmp_path, agent=agent, tasks=[{**TASK, "metadata": {}}], variants=())
    trial, _ = only_trial(run(tmp_path).run)
    record = document(trial.run_record)
    assert record["status"] == "failed"
    assert record["error"]["message"].startswith(message)
    assert record["error"]["step"] == "harness"
