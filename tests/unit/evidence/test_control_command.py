"""`labaudit control` reaches a trial that runs now: the harness acknowledges, the log says who asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from labaudit.sdk.__main__ import copy_sdk
from labaudit.store.lab_folder import LabFolder
from tests.experiments import document, only_trial, write_experiment

PATIENT = """
import os, sys, time
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from labaudit_sdk import Session

with Session.open("patient", "1", level="sdk_control", step_semantics="a tick of 20 ms") as lab:
    lab.on_checkpoint = lambda label: open(os.environ["MARK"][3:], "w").write(label)
    deadline = time.monotonic() + 40
    while lab.running and time.monotonic() < deadline:
        with lab.step():
            time.sleep(0.02)
    lab.finish("success", answer="stopped" if lab.stopped else "ran out")
"""


def labaudit(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "labaudit", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def until(what: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def test_a_running_trial_is_told_to_checkpoint_and_to_stop(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    write_experiment(
        tmp_path, agent=PATIENT, tasks=({"id": "a", "expected": "stopped"},), variants=(),
        # A value that starts with /tmp would be mapped to the trial's own.
        harness={"integration_level": "sdk_control", "mode": "sdk", "env": {"MARK": f"at:{mark}"}},
        runtime={"timeouts": {"trial_seconds": 60}},
    )  # fmt: skip
    copy_sdk(str(tmp_path / "harness"))
    lab = tmp_path / ".lab"
    command = [sys.executable, "-m", "labaudit", "run", str(tmp_path / "experiment.yaml"), "--lab-dir", str(lab)]
    running = subprocess.Popen([*command, "--no-sign"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        until(lambda: labaudit("control", "latest", "continue", "--lab-dir", str(lab)).returncode == 0)
        asked = labaudit("control", "latest", "checkpoint", "--label", "mid", "--json", "--lab-dir", str(lab))
        assert asked.returncode == 0, asked.stderr
        assert json.loads(asked.stdout)["label"] == "mid"
        until(mark.exists)
        assert mark.read_text() == "mid"
        assert labaudit("control", "latest", "stop", "--lab-dir", str(lab)).returncode == 0
        output, _ = running.communicate(timeout=60)
    finally:
        if running.poll() is None:
            running.kill()
    assert running.returncode == 0, output
    trial, record = only_trial(LabFolder(lab).find_run("latest"))
    assert record.outcome == "success"
    assert document(trial.trial_output)["answer"] == "stopped"
    log = [json.loads(line) for line in trial.control_log.read_text().splitlines()]
    by_operator = [entry["action"] for entry in log if entry["by"] == "operator"]
    assert by_operator == ["continue", "checkpoint", "stop"]
    events = [json.loads(line) for line in trial.harness_events.read_text().splitlines()]
    seen = {event["action_observed"] for event in events if event["event_type"] == "control_ack"}
    assert {"checkpoint", "stop"} <= seen
    assert document(trial.grades)["integration_level"]["observed"] == "sdk_control"
    late = labaudit("control", "latest", "stop", "--lab-dir", str(lab))
    assert late.returncode == 2
    assert "no trial of this run is running" in late.stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("control", "latest", "stop"), "has no run yet"),
        (("control", "run-x", "stop"), "there is no run"),
        (("control", "run-x", "pause"), "pause"),
        (("control", "run-x", "stop", "--label", "a"), "--label names a checkpoint"),
    ],
)
def test_what_cannot_be_controlled_is_bad_usage(tmp_path: Path, arguments: tuple[str, ...], word: str) -> None:
    done = labaudit(*arguments, "--lab-dir", os.fspath(tmp_path / ".lab"))
    assert done.returncode == 2
    assert word in done.stderr
    assert "Traceback" not in done.stderr
