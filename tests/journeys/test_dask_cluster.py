"""A scheduler and workers over TLS: a worker killed in mid-trial, a scheduler gone, and a run that ends whole."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from labaudit.engines.host.ownership import PREFIX
from labaudit.store.lab_folder import LabFolder
from labaudit.verify.request import Request
from labaudit.verify.targets import verify_target
from tests.dask_cluster import certificate, free_port, scheduler, worker
from tests.experiments import ECHO, document, trials, write_experiment

pytestmark = [pytest.mark.acceptance, pytest.mark.docker, pytest.mark.xdist_group("docker")]

SLOW = ECHO.replace("import json, os", "import json, os, time\ntime.sleep(0.5)")
TASKS = [{"id": f"t{n}", "name": f"N{n}", "expected": f"Hello N{n}"} for n in range(20)]


def _labaudit(folder: Path, env: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "labaudit", *arguments, "--no-sign", "--executor", "dask"]
    return subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def _wait_for_trials(folder: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 240
    while len(list(folder.glob(".lab/runs/*/trials/*"))) < count:
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)


def _containers(run_id: str) -> str:
    command = ["docker", "ps", "-aq", "--filter", f"label={PREFIX}run={run_id}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _is_whole(folder: Path, count: int) -> None:
    run = LabFolder(folder / ".lab").find_run("latest")
    found = trials(run)
    assert len(found) == count
    assert all(record.outcome == "success" for _, record in found)
    assert verify_target(run.path, Request(integrity_only=True)).exit_code == 0
    assert [attempt for _, record in found for attempt in [record.attempt] if attempt > 1]
    assert _containers(run.run_id) == ""


def test_a_worker_killed_in_mid_trial_costs_an_attempt_and_no_trial(tmp_path: Path) -> None:
    env = certificate(tmp_path)
    write_experiment(tmp_path, agent=SLOW, tasks=TASKS, runtime={"engine": "docker"}, design={"retries": {"infra": 3}})
    port = free_port()
    with ExitStack() as stack:
        scheduler(stack, port, env, tmp_path)
        first = worker(stack, "one", port, env, tmp_path)
        worker(stack, "two", port, env, tmp_path)
        process = _labaudit(tmp_path, env, "run", "experiment.yaml", "--scheduler", f"tls://127.0.0.1:{port}")
        _wait_for_trials(tmp_path, 6, process)
        first.kill()
        said, _ = process.communicate(timeout=400)
        assert process.returncode == 0, said
    _is_whole(tmp_path, 40)
    described = document(LabFolder(tmp_path / ".lab").find_run("latest").path / "executor.json")
    assert described["scheduler_tls"] is True
    assert len(described["scheduler_certificate_sha256"]) == 64
    assert {worker["worker_id"] for worker in described["workers"]} == {"one", "two"}


def test_a_scheduler_that_goes_away_leaves_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    env = certificate(tmp_path)
    env |= {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "3s", "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "12s"}
    write_experiment(tmp_path, agent=SLOW, tasks=TASKS[:8], runtime={"engine": "docker"},
                     design={"retries": {"infra": 3}})  # fmt: skip
    port = free_port()
    with ExitStack() as stack:
        first = scheduler(stack, port, env, tmp_path)
        worker(stack, "one", port, env, tmp_path)
        process = _labaudit(tmp_path, env, "run", "experiment.yaml", "--scheduler", f"tls://127.0.0.1:{port}")
        _wait_for_trials(tmp_path, 3, process)
        first.kill()
        said, _ = process.communicate(timeout=200)
        assert process.returncode == 4, said
        assert "labaudit resume" in said
        assert "Traceback" not in said
    again = free_port()
    with ExitStack() as stack:
        scheduler(stack, again, env, tmp_path)
        worker(stack, "two", again, env, tmp_path)
        process = _labaudit(tmp_path, env, "resume", "latest", "--scheduler", f"tls://127.0.0.1:{again}")
        said, _ = process.communicate(timeout=400)
        assert process.returncode == 0, said
    _is_whole(tmp_path, 16)
    assert json.loads((tmp_path / ".lab" / "registry.jsonl").read_text())["trials"] == 16
