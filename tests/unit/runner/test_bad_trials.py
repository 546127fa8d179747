"""Harnesses that do everything wrong: each gets its documented result, and the other trials go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from labaudit.store.run_folder import TrialFolder
from tests.experiments import ECHO, document, run, trials, write_experiment


def _spoilt(lines: str) -> str:
    """An agent that runs `lines` for task a and answers task b as it should; `out` and `given` are there."""
    head = (
        "import json, os, sys\n"
        'given = json.load(open(os.environ["LABAUDIT_TRIAL_INPUT"]))\n'
        'out = given["runtime"]["paths"]["out"]\n'
        'if given["task"]["id"] == "a":\n'
    )
    return head + "".join(f"    {line}\n" for line in lines.splitlines()) + "    sys.exit(0)\n" + ECHO


CASES = {
    "writes nothing": ("pass", "missing", "no trial_output.json"),
    "writes half a JSON": (
        'open(out + "/trial_output.json", "w").write(\'{"schema_ver\')',
        "missing",
        "cannot be read",
    ),
    "ends with a code": ("sys.exit(7)", "error", "exit code 7"),
    "dies of a signal": ("os.kill(os.getpid(), 11)", "error", "signal 11"),
    "names another trial": (
        'ids = dict(given["ids"], trial_id="other")\n'
        'json.dump({"schema_version": "trial_output_v1", "ids": ids, "outcome": "success"},'
        ' open(out + "/trial_output.json", "w"))',
        "missing",
        "ids of another trial",
    ),
    "breaks the schema": (
        'json.dump({"schema_version": "trial_output_v1", "ids": given["ids"], "outcome": "great"},'
        ' open(out + "/trial_output.json", "w"))',
        "missing",
        "invalid at",
    ),
    "says success and crashes": (
        'json.dump({"schema_version": "trial_output_v1", "ids": given["ids"], "outcome": "success"},'
        ' open(out + "/trial_output.json", "w"))\nsys.exit(3)',
        "error",
        "exit code 3",
    ),
    "puts a link where its output belongs": (
        'os.symlink("/etc/passwd", out + "/trial_output.json")',
        "missing",
        "no trial_output.json",
    ),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_spoilt_trial_is_labelled_and_the_other_goes_on(name: str, tmp_path: Path) -> None:
    lines, outcome, reason = CASES[name]
    write_experiment(tmp_path, agent=_spoilt(lines), variants=())
    result = run(tmp_path)
    found = {record.ids.task_id: (trial, record) for trial, record in trials(result.run)}
    assert found["b"][1].outcome == "success"
    trial, record = found["a"]
    assert (record.status, record.outcome, record.attempt) == ("completed", outcome, 1)
    assert not trial.trial_output.exists() or outcome == "error"
    assert document(trial.metrics)["metrics"]["success"] is None
    assert reason in _judgement(result.run, trial)


def _judgement(run_folder: object, trial: TrialFolder) -> str:
    from labaudit.store.event_log import read_events
    from labaudit.store.run_folder import RunFolder

    assert isinstance(run_folder, RunFolder)
    judged = next(event for event in read_events(trial.events) if event["event_type"] == "trial.judged")
    return run_folder.artifacts.get(str(judged["payload_ref"])).decode()


def test_a_trial_that_hangs_ends_at_its_timeout(tmp_path: Path) -> None:
    write_experiment(tmp_path, agent=_spoilt("import time\ntime.sleep(60)"), variants=(),
                     runtime={"timeouts": {"trial_seconds": 1}})  # fmt: skip
    result = run(tmp_path)
    outcomes = {record.ids.task_id: record.outcome for _, record in trials(result.run)}
    assert outcomes == {"a": "error", "b": "success"}


def test_a_command_that_is_not_there_is_said_before_the_run(tmp_path: Path) -> None:
    from labaudit.errors import BadInput

    write_experiment(tmp_path, harness={"command": ["no-such-program"]})
    with pytest.raises(BadInput, match="no-such-program"):
        run(tmp_path)
    assert not (tmp_path / ".lab" / "runs").exists()


def test_output_without_end_is_bounded_hashed_and_said(tmp_path: Path) -> None:
    flood = 'for _ in range(400):\n    sys.stdout.write("x" * 65536)'
    write_experiment(tmp_path, agent=_spoilt(flood), variants=())
    result = run(tmp_path)
    trial = next(trial for trial, record in trials(result.run) if record.ids.task_id == "a")
    assert trial.stdout.stat().st_size < 3 << 20
    assert b"bytes left out here" in trial.stdout.read_bytes()


def test_an_outcome_that_the_harness_states_is_kept(tmp_path: Path) -> None:
    fails = 'json.dump({"schema_version": "trial_output_v1", "ids": given["ids"], "outcome": "failure", "answer": 1},' \
        ' open(out + "/trial_output.json", "w"))\nsys.exit(2)'
    write_experiment(tmp_path, agent=_spoilt(fails), variants=())
    result = run(tmp_path)
    assert {record.ids.task_id: record.outcome for _, record in trials(result.run)} == {"a": "failure", "b": "success"}
