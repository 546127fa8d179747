"""The progress line: it says whose word each number is, so that none is read as the score."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

from labaudit.cli import invoke
from tests.experiments import write_experiment

CONFIDENT = """
import json, os
given = json.load(open(os.environ["LABAUDIT_TRIAL_INPUT"]))
result = {"schema_version": "trial_output_v1", "ids": given["ids"], "outcome": "success",
          "answer": "Hello " + given["task"]["name"], "metrics": {"cost": given["task"]["cost"]}}
if given["task"]["id"] != "silent":
    json.dump(result, open(given["runtime"]["paths"]["out"] + "/trial_output.json", "w"))
"""
TASKS = [
    {"id": "right", "name": "Ann", "expected": "Hello Ann", "cost": 2},
    {"id": "wrong", "name": "Bob", "expected": "Goodbye Bob", "cost": 4},
    {"id": "silent", "name": "Cleo", "expected": "Hello Cleo", "cost": 6},
]


def _talk(path: Path) -> str:
    err = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
        assert invoke(["run", str(path), "--lab-dir", str(path.parent / "lab"), "--no-sign"]) == 0
    return err.getvalue()


def test_the_harness_s_word_stands_apart_from_what_the_evaluator_found(tmp_path: Path) -> None:
    said = _talk(write_experiment(tmp_path, agent=CONFIDENT, tasks=TASKS, variants=()))
    assert "outcomes by the harness's own word: 1 missing, 2 success" in said
    assert "primary metric success (evaluator:exact): 1 of 2, 1 missing" in said


def test_a_primary_metric_that_the_harness_reports_is_called_its_own_word(tmp_path: Path) -> None:
    said = _talk(
        write_experiment(
            tmp_path,
            agent=CONFIDENT,
            tasks=TASKS,
            variants=(),
            metrics=[{"name": "cost", "type": "continuous", "source": "harness"}],
            analysis_plan={"primary": ["cost"]},
        )
    )
    assert "primary metric cost (its own word too): mean 3 of 2, 1 missing" in said
