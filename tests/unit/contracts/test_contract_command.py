"""`labaudit contract check`: hostile sizes, standard input, and how much of it is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from labaudit.cli import labaudit
from labaudit.contracts import file_check

RUN: dict[str, Any] = {
    "id": "run-1",
    "taskId": "t",
    "taskType": "atomic",
    "status": "completed",
    "metrics": {"latency": 1},
    "trace": [
        {"timestamp": "2026-11-18T07:00:00Z", "level": "info", "event": "started"},
        {"timestamp": "2026-11-18T07:00:01Z", "level": "info", "event": "completed"},
    ],
    "startedAt": "2026-11-18T07:00:00Z",
    "completedAt": "2026-11-18T07:00:01Z",
    "provenance": {"runnerId": "r", "runnerVersion": "1", "config": {}},
}
SCORE: dict[str, Any] = {
    "id": "score-1",
    "runId": "run-1",
    "metric": "accuracy",
    "value": 1,
    "target": "final",
    "evaluatorId": "intent.metrics",
    "createdAt": "2026-11-18T07:00:01Z",
}


def check(*arguments: str, piped: bytes = b"") -> Result:
    return CliRunner().invoke(labaudit, ["contract", "check", *arguments], input=piped)


def report(*arguments: str, piped: bytes = b"") -> tuple[int, dict[str, Any]]:
    result = check(*arguments, "--json", piped=piped)
    return result.exit_code, json.loads(result.stdout)


@pytest.fixture
def ten_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_check, "ENOUGH", 10)


@pytest.mark.usefixtures("ten_are_enough")
@pytest.mark.parametrize(
    ("name", "data", "stopped_at", "code"),
    [
        ("array.json", b"[" + b",".join([b"1"] * 500) + b"]", "array.json[10]", 1),
        ("lines.jsonl", b"{}\n" * 500, "lines.jsonl:11", 1),
        ("garbage.jsonl", b"x\n" * 500, "garbage.jsonl:11", 2),
        ("one.json", json.dumps({**RUN, "trace": [1] * 500}).encode(), "one.json", 1),
    ],
)
def test_a_flood_of_errors_ends_the_check_and_says_where(
    tmp_path: Path, name: str, data: bytes, stopped_at: str, code: int
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    exit_code, told = report(str(path), "--show", "3")
    assert exit_code == code
    assert told["errors"] + len(told["unreadable"]) + told["unreadable_left_out"] == 10
    assert len(told["findings"]) + len(told["unreadable"]) == 3
    assert told["stopped_at"] == str(tmp_path / stopped_at)
    words = check(str(path), "--show", "3")
    assert f"stopped at {tmp_path / stopped_at}" in words.stdout


@pytest.mark.usefixtures("ten_are_enough")
def test_a_check_that_stopped_accuses_no_score_of_a_run_it_never_came_to(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    other_run = {**RUN, "id": "run-0"}
    rows = [other_run, SCORE, *[{}] * 10, RUN]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    _, told = report(str(path))
    assert told["stopped_at"] is not None
    assert told["by_rule"] == {"K1": 10}, "run-1 stands behind the place where the check stopped"


def test_many_sound_records_are_all_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text((json.dumps(RUN) + "\n") * 2000, encoding="utf-8")
    assert report(str(path)) == (
        0,
        {
            "records": {"run": 2000},
            "errors": 0,
            "warnings": 0,
            "by_rule": {},
            "findings": [],
            "findings_left_out": 0,
            "unreadable": [],
            "unreadable_left_out": 0,
            "stopped_at": None,
        },
    )


def test_records_from_standard_input_are_checked_with_the_files(tmp_path: Path) -> None:
    runs = tmp_path / "runs.json"
    runs.write_text(json.dumps(RUN), encoding="utf-8")
    sound = json.dumps(SCORE).encode()
    assert report(str(runs), "-", piped=sound)[0] == 0
    lost = json.dumps({**SCORE, "runId": "elsewhere"}).encode()
    assert report("-", piped=lost)[1]["by_rule"] == {}, "alone there is no run to look for"
    code, told = report(str(runs), "-", piped=lost)
    assert (code, told["by_rule"]) == (1, {"C3": 1})
    undeclared = json.dumps({**SCORE, "metric": "charm"}).encode()
    code, told = report("-", piped=undeclared)
    assert (code, told["by_rule"]) == (0, {"C5": 1}), "installed modules declare their metrics here too"
