"""The kit that a harness carries: the same code as the package, runnable with the standard library alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from labaudit.cli import labaudit
from labaudit.contracts.harness_kit import KIT, differences, write_kit
from labaudit.contracts.record_check import RecordCheck
from labaudit.contracts.trial_mapping import TrialFacts, run_record_from_trial
from labaudit.records.schema_registry import validate

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "booking"
TASKS = [json.loads(line) for line in (EXAMPLE / "tasks.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("booking") / "harness"
    folder.mkdir()
    shutil.copy(EXAMPLE / "harness" / "harness.py", folder)
    result = CliRunner().invoke(labaudit, ["contract", "kit", str(folder)])
    assert result.exit_code == 0
    return folder


def trial(tmp_path: Path, task: dict[str, Any], action: str = "continue", **bindings: Any) -> dict[str, Any]:
    ids = {"run_id": "run-x", "trial_id": "base.t.r0", "variant_id": "base", "task_id": task["id"], "repl_idx": 0}
    for name in ("in", "out", "state"):
        (tmp_path / name).mkdir()
    control = tmp_path / "state" / "lab_control.json"
    control.write_text(json.dumps({"format_version": "control_plane_v1", "control_seq": 0, "action": action}))
    paths = {name: str(tmp_path / name) for name in ("workspace", "state", "dataset", "out", "tmp")}
    return {
        "schema_version": "trial_input_v1",
        "ids": ids,
        "task": task,
        "bindings": bindings,
        "design": {"sanitization_profile": "hermetic_functional_v2", "integration_level": "cli_events"},
        "runtime": {
            "paths": paths,
            "network": {"mode_requested": "none"},
            "control_plane": {"mode": "file", "path": str(control)},
        },
    }


def execute(harness: Path, tmp_path: Path, document: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    place = tmp_path / "in" / "trial_input.json"
    place.write_text(json.dumps(document), encoding="utf-8")
    # -I and -S: neither the environment nor installed packages can help.
    command = [sys.executable, "-I", "-S", str(harness / "harness.py")]
    env = {**os.environ, "LABAUDIT_TRIAL_INPUT": str(place)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out"
    output = json.loads((out / "trial_output.json").read_text(encoding="utf-8"))
    events = [json.loads(line) for line in (out / "harness_events.jsonl").read_text(encoding="utf-8").splitlines()]
    assert validate("trial_output_v1", output) == []
    assert [finding for event in events for finding in validate("hook_events_v1", event)] == []
    assert validate("harness_manifest_v1", json.loads((out / "harness_manifest.json").read_text())) == []
    return output, events


def test_the_kit_is_the_package_s_own_code_and_a_stale_one_is_noticed(harness: Path, tmp_path: Path) -> None:
    assert differences(harness) == []
    write_kit(tmp_path)
    (tmp_path / KIT / "modules" / "intent.py").write_text("# changed\n")
    (tmp_path / KIT / "scenarios" / "plan.py").unlink()
    assert differences(tmp_path) == ["scenarios/plan.py", "modules/intent.py"]


def test_no_copy_of_the_kit_is_in_the_repository() -> None:
    assert (EXAMPLE / "harness" / ".gitignore").read_text().split() == [f"{KIT}/"]


def test_a_harness_without_its_kit_says_how_to_get_it(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE / "harness" / "harness.py", tmp_path)
    done = subprocess.run([sys.executable, str(tmp_path / "harness.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "labaudit contract kit" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_booking_scenario_leaves_valid_evidence(harness: Path, tmp_path: Path) -> None:
    document = trial(tmp_path, TASKS[0], intent_min_confidence=0.5)
    output, events = execute(harness, tmp_path, document)
    assert output["outcome"] == "success"
    assert output["metrics"] == {"steps_completed": 3}
    assert [event["event_type"] for event in events] == ["agent_step_start", "agent_step_end", "control_ack"] * 3
    assert [event["ext"]["scenario_step"] for event in events[::3]] == ["step-1", "step-2", "step-3"]


def test_a_stop_at_a_step_boundary_is_acknowledged_and_ends_the_scenario(harness: Path, tmp_path: Path) -> None:
    output, events = execute(harness, tmp_path, trial(tmp_path, TASKS[0], action="stop"))
    assert [event["event_type"] for event in events] == ["agent_step_start", "agent_step_end", "control_ack"]
    assert events[-1]["action_taken"] == "stop"
    assert output["outcome"] == "error"
    assert [step["status"] for step in output["ext"]["scenario"]["steps"]] == ["completed", "skipped", "skipped"]


@pytest.mark.parametrize(
    "task",
    [
        {"id": "t", "prompt": "neither atomic nor scenario"},
        {**TASKS[0], "input_map": {"step-1": [{"from": "step:step-2.output", "to": "input"}]}},
    ],
    ids=["another shape", "unplannable"],
)
def test_a_task_that_cannot_be_run_is_an_error_and_no_crash(
    harness: Path, tmp_path: Path, task: dict[str, Any]
) -> None:
    output, events = execute(harness, tmp_path, trial(tmp_path, task))
    assert output["error"]["error_type"] == "task_invalid"
    assert events == []


def test_the_mapped_record_of_the_trial_keeps_its_contract(harness: Path, tmp_path: Path) -> None:
    document = trial(tmp_path, TASKS[0])
    output, events = execute(harness, tmp_path, document)
    facts = TrialFacts(
        trial_id=document["ids"]["trial_id"],
        task_id=TASKS[0]["id"],
        task=TASKS[0],
        outcome=output["outcome"],
        started_at="2020-01-01T00:00:00Z",
        ended_at="2099-01-01T00:00:00Z",
        latency_ms=12.5,
        harness_name="labaudit-scenario-harness",
        bindings={},
        resolved_digest="sha256:" + "0" * 64,
        trial_output=output,
        hook_events=events,
        hooks_complete=True,
    )
    record = run_record_from_trial(facts)
    check = RecordCheck()
    check.add(TASKS[0], "task")
    check.add(record, "run")
    report = check.finish()
    assert (report.errors, report.warnings) == (0, 0), report.as_json()
    assert record["metrics"] == {"latency": 12.5}, "the framework's clock, and no tokens where no model was called"
    assert record["provenance"]["config"]["labels"]["steps"] == "self_reported"
    assert {event.get("step") for event in record["trace"]} == {None, "step-1", "step-2", "step-3"}
