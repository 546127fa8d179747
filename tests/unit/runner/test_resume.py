"""A runner killed at any moment leaves a run that `resume` completes: no trial twice, lost attempts recorded."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from labaudit.core.clock import SystemClock
from labaudit.core.digest import Digest
from labaudit.errors import BadInput, EnvironmentLacks
from labaudit.pipeline.run import RunRequest, resume_run
from labaudit.runner.context import RunOptions
from labaudit.runner.run_start import read_schedule
from labaudit.store.atomic import TEMPORARY_PREFIX
from labaudit.store.event_log import EventLog, LogIdentity, read_events
from labaudit.store.lab_folder import LabFolder
from labaudit.verify.request import Request
from labaudit.verify.targets import verify_target
from tests.experiments import ECHO, Quiet, document, run, trials, write_experiment

SLOW = ECHO.replace("import json, os", "import json, os, time\ntime.sleep(0.3)")
TASKS = [{"id": f"t{n}", "name": f"N{n}", "expected": f"Hello N{n}"} for n in range(6)]
HELD = ("t4", "t5")
"""In a held experiment these tasks do not end before a file `go` is there."""
HOLD = """import json, os, time
def hold(given):
    while given["ids"]["task_id"] in {held!r} and not os.path.exists({go!r}):
        time.sleep(0.02)
"""


def _start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "labaudit", "run", "experiment.yaml", "--workers", "2", "--no-sign", *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def _wait_for_trials(folder: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        started = any(folder.glob(".lab/live/*/*/attempt-*/events.jsonl"))
        if len(list(folder.glob(".lab/runs/*/trials/*"))) >= count and (started or not count):
            return
        time.sleep(0.01)


def _kill_in_the_middle(folder: Path) -> None:
    """Two trials are under way, and cannot end, when the runner is killed; the others are done or not begun."""
    agent = ECHO.replace("import json, os", HOLD.format(held=HELD, go=str(folder / "go")))
    agent = agent.replace("out = given", "hold(given)\nout = given", 1)
    write_experiment(folder, agent=agent, tasks=TASKS)
    process = _start(folder)
    deadline = time.monotonic() + 60
    while len(_held(folder)) < 2:
        assert time.monotonic() < deadline, "the trials that cannot end were never started"
        assert process.poll() is None, "the run ended though trials were held"
        time.sleep(0.01)
    process.kill()
    process.wait()
    (folder / "go").touch()


def _held(folder: Path) -> list[Path]:
    logs = folder.glob(".lab/live/*/*/attempt-1/events.jsonl")
    return [log for log in logs if f".{HELD[0]}." in str(log) or f".{HELD[1]}." in str(log)]


def _resume(folder: Path) -> LabFolder:
    lab = LabFolder(folder / ".lab")
    request = RunRequest(sign=False, options=RunOptions(workers=2))
    result = resume_run(lab, lab.find_run("latest"), request, Quiet())
    planned = {item.trial_id for item in read_schedule(result.run)}
    found = trials(result.run)
    assert {record.ids.trial_id for _, record in found} == planned
    assert all(record.outcome == "success" for _, record in found)
    report = verify_target(result.run.path, Request(integrity_only=True))
    assert report.exit_code == 0, report.as_json()
    return lab


def test_a_killed_run_is_completed_and_says_what_was_lost(tmp_path: Path) -> None:
    _kill_in_the_middle(tmp_path)
    lab = _resume(tmp_path)
    found = trials(lab.find_run("latest"))
    assert len(found) == 12
    lost = [(trial, record) for trial, record in found if record.attempt > 1]
    assert len(lost) == 2
    assert all(record.ids.task_id in HELD for _, record in lost)
    for trial, _ in lost:
        events = list(read_events(trial.attempt(1) / "events.jsonl"))
        assert [event["event_type"] for event in events][-2:] == ["attempt.lost", "trial.sealed"]


COUNTING = ECHO.replace(
    'answer = ',
    """place = {place!r} + "/" + given["ids"]["trial_id"]
open(place, "a").write("ran\\n")
ran = len(open(place).readlines())
answer = "wrong" if ran == 1 else """,
)


class Died(BaseException):
    """Stands for a kill: nothing in the runner handles it."""


@pytest.mark.parametrize("moment", ["build_trial_record", "grade_trial", "events_head"])
def test_a_result_that_was_sealed_is_finished_by_resume_and_not_measured_again(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent fails at its first try and would succeed at a second: a graded failure must not get one."""
    place = tmp_path / "counts"
    place.mkdir()
    agent = COUNTING.replace("{place!r}", repr(str(place)))
    write_experiment(tmp_path, agent=agent, variants=(), tasks=TASKS[:1])

    def die(*_: object, **__: object) -> object:
        raise Died

    with monkeypatch.context() as patched:
        module = "commit" if moment == "build_trial_record" else "sealed"
        patched.setattr(f"labaudit.runner.{module}.{moment if moment != 'events_head' else 'grade_trial'}", die)
        with pytest.raises(Died):
            run(tmp_path, workers=1)
    lab = LabFolder(tmp_path / ".lab")
    if moment == "events_head":
        (head,) = tmp_path.glob(".lab/live/*/*/attempt-1/events.head")
        head.unlink()
    _resume(tmp_path)
    ((trial, record),) = trials(lab.find_run("latest"))
    assert (record.attempt, record.outcome) == (1, "success")
    assert [path.read_text() for path in place.iterdir()] == ["ran\n"]
    assert document(trial.metrics)["metrics"]["success"] is False
    assert [event["event_type"] for event in read_events(trial.events)][-2:] == ["trial.judged", "trial.sealed"]


def test_a_disk_that_fills_up_after_the_seal_ends_the_run_and_resume_finishes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_experiment(tmp_path, variants=(), tasks=TASKS[:2])

    def full(*_: object, **__: object) -> object:
        raise EnvironmentLacks("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("labaudit.runner.commit.build_trial_record", full)
        with pytest.raises(EnvironmentLacks, match="disk is full"):
            run(tmp_path, workers=1)
    lab = _resume(tmp_path)
    assert [record.attempt for _, record in trials(lab.find_run("latest"))] == [1, 1]


def test_a_log_that_was_sealed_without_its_head_gets_its_head(tmp_path: Path) -> None:
    _kill_in_the_middle(tmp_path)
    (left,) = list(tmp_path.glob(".lab/live/*/*/attempt-1/events.jsonl"))[:1]
    first = next(iter(read_events(left)))
    run_folder = LabFolder(tmp_path / ".lab").find_run("latest").path
    resolved = Digest.of((run_folder / "resolved_experiment.json").read_bytes())
    identity = LogIdentity(**first["ids"], attempt=1, resolved_digest=resolved)
    log, _ = EventLog.recover(left, identity, clock=SystemClock())
    head = left.with_name("events.head")
    log.seal(head)
    head.unlink()
    lab = _resume(tmp_path)
    (trial,) = [trial for trial, record in trials(lab.find_run("latest")) if record.ids.trial_id == identity.trial_id]
    assert (trial.attempt(1) / "events.head").is_file()


def test_what_a_killed_writer_left_half_written_is_cleared_away(tmp_path: Path) -> None:
    _kill_in_the_middle(tmp_path)
    run_folder = LabFolder(tmp_path / ".lab").find_run("latest").path
    for place in (run_folder, run_folder / "artifacts" / "meta", run_folder / "artifacts" / "sha256"):
        (place / f"{TEMPORARY_PREFIX}left").write_bytes(b"{")
    _resume(tmp_path)
    assert list(run_folder.rglob(f"{TEMPORARY_PREFIX}*")) == []


def test_ctrl_c_ends_with_130_and_a_run_that_can_go_on(tmp_path: Path) -> None:
    write_experiment(tmp_path, agent=SLOW, tasks=TASKS)
    process = _start(tmp_path)
    _wait_for_trials(tmp_path, 2, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert b"labaudit resume" in said
    assert b"Traceback" not in said
    _resume(tmp_path)


def test_a_finished_run_is_not_resumed(tmp_path: Path) -> None:
    write_experiment(tmp_path)
    result = run(tmp_path)
    with pytest.raises(BadInput, match="finished and sealed"):
        resume_run(LabFolder(tmp_path / ".lab"), result.run, RunRequest(sign=False), Quiet())


def test_a_trial_that_the_engine_loses_every_time_is_a_lost_trial_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from labaudit.engines.process_engine import ProcessEngine

    whole = ProcessEngine.open

    def fail_for_one(self: ProcessEngine, spec: object) -> object:
        if ".a." in spec.labels.trial_id:  # type: ignore[attr-defined]
            raise EnvironmentLacks("the engine went away")
        return whole(self, spec)  # type: ignore[arg-type]

    monkeypatch.setattr(ProcessEngine, "open", fail_for_one)
    write_experiment(tmp_path, variants=(), design={"retries": {"infra": 2}})
    result = run(tmp_path)
    assert result.inclusion.totals.to_json() == {"scheduled": 2, "included": 1, "excluded": 0, "lost": 1}
    row = next(row for row in result.inclusion.rows if row.status == "lost")
    assert (row.rule, row.attempts, row.reason) == ("L1", 3, "the engine went away")
    trial, record = next(item for item in trials(result.run) if item[1].status == "lost")
    assert record.outcome is None
    assert sorted(path.name for path in trial.attempts.iterdir()) == ["1", "2"]
    assert verify_target(result.run.path, Request(integrity_only=True)).exit_code == 0


@pytest.mark.acceptance
def test_twenty_kills_at_random_moments_of_a_twelve_trial_run(tmp_path: Path) -> None:
    rng = random.Random(20261118)
    for number in range(20):
        folder = tmp_path / str(number)
        write_experiment(folder, agent=SLOW, tasks=TASKS)
        process = _start(folder)
        _wait_for_trials(folder, 0, process)
        time.sleep(rng.uniform(0.3, 2.2))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        lab = LabFolder(folder / ".lab")
        if not lab.run_ids() or not lab.find_run("latest").resolved_digest.is_file():
            continue  # killed before the plan stood: there is nothing to resume, and nothing half-written to find
        if not lab.find_run("latest").sealed:
            _resume(folder)
