"""Clusters that change under a run, and a bucket between workers and coordinator."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from labaudit.core.clock import SystemClock
from labaudit.engines.process_engine import ProcessEngine
from labaudit.errors import EnvironmentLacks
from labaudit.pipeline.run import RunRequest, resolve_experiment, run_experiment
from labaudit.planning.schedule import PlannedTrial
from labaudit.runner.commit import staging
from labaudit.runner.context import RunContext, RunOptions
from labaudit.runner.execution import open_context
from labaudit.runner.executor import TrialDone
from labaudit.runner.remote.executor import DaskExecutor
from labaudit.runner.remote.ingest import WorkerRefused, ingest
from labaudit.runner.remote.parts import parts_of
from labaudit.runner.remote.receipt import worker_key
from labaudit.runner.remote.worker import run_on_worker
from labaudit.runner.run_start import create_run, read_schedule
from labaudit.store.lab_folder import LabFolder
from labaudit.verify.request import Request
from labaudit.verify.targets import verify_target
from tests.dask_cluster import free_port, scheduler, worker
from tests.experiments import ECHO, Quiet, document, trials, write_experiment

SLOW = ECHO.replace("import json, os", "import json, os, time\ntime.sleep(0.3)")
TASKS = [{"id": f"t{n}", "name": f"N{n}", "expected": f"Hello N{n}"} for n in range(5)]


class Counting(Quiet):
    """Says when some trials are done."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.reached, self._count = threading.Event(), count

    def trial(self, done: TrialDone) -> None:
        super().trial(done)
        if len(self.done) >= self._count:
            self.reached.set()


def test_a_run_goes_on_when_every_worker_it_began_with_is_gone(tmp_path: Path) -> None:
    """The run's parts were on the first worker alone; the second gets them from the coordinator."""
    path = write_experiment(tmp_path, agent=SLOW, tasks=TASKS, design={"retries": {"infra": 3}})
    port, env, progress = free_port(), dict(os.environ), Counting(2)
    with ExitStack() as stack:
        scheduler(stack, port, env, tmp_path, protocol="tcp")
        first = worker(stack, "one", port, env, tmp_path, protocol="tcp")

        def replace_worker() -> None:
            if progress.reached.wait(60):
                first.kill()
                worker(stack, "two", port, env, tmp_path, protocol="tcp")

        replacing = threading.Thread(target=replace_worker)
        replacing.start()
        executor = DaskExecutor(f"tcp://127.0.0.1:{port}", workers=1)
        try:
            request = RunRequest(sign=False, executor=executor)
            result = run_experiment(path, LabFolder(tmp_path / ".lab"), request, progress)
        finally:
            progress.reached.set()
            replacing.join()
    found = trials(result.run)
    assert (result.inclusion.totals.included, len(found)) == (10, 10)
    assert {document(trial.receipt)["worker_id"] for trial, _ in found} == {"one", "two"}
    assert any(record.attempt > 1 for _, record in found)
    assert verify_target(result.run.path, Request(integrity_only=True)).exit_code == 0


def _prepared(folder: Path) -> tuple[RunContext, PlannedTrial, Path]:
    """A run before its first trial, that trial, and a worker's folder."""
    resolution, engine, _ = resolve_experiment(write_experiment(folder, variants=()))
    engine.close()
    lab, base = LabFolder(folder / ".lab"), folder / "worker"
    base.mkdir()
    run = create_run(lab, resolution, SystemClock())
    ctx = open_context(lab, run, ProcessEngine(), options=RunOptions(), evidence_origin="worker")
    return ctx, read_schedule(run)[0], base


@dataclass
class Bucket:
    """A bucket of a local S3 server."""

    name: str
    client: Any

    @property
    def url(self) -> str:
        return f"s3://{self.name}/objects"

    def names(self) -> list[str]:
        listed = self.client.list_objects_v2(Bucket=self.name).get("Contents", [])
        return [str(entry["Key"]) for entry in listed]


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    import boto3
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "made-up",
            "AWS_SECRET_ACCESS_KEY": "made-up",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():
            monkeypatch.setenv(name, value)
        # Connections of an earlier server would be used again.
        s3fs.S3FileSystem.clear_instance_cache()
        client = boto3.client("s3")
        # The server's memory outlives it; each test has a bucket of its own.
        name = f"evidence-{uuid.uuid4().hex}"
        client.create_bucket(Bucket=name)
        yield Bucket(name, client)
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
        server.stop()


def test_a_run_hands_its_artifacts_over_through_a_bucket(bucket: Bucket, tmp_path: Path) -> None:
    path = write_experiment(tmp_path, variants=())
    executor = DaskExecutor(None, workers=1, objects_url=bucket.url)
    result = run_experiment(path, LabFolder(tmp_path / ".lab"), RunRequest(sign=False, executor=executor), Quiet())
    assert result.inclusion.totals.included == 2
    there = {name.rpartition("/")[2] for name in bucket.names()}
    signed = {ref.rpartition("/")[2] for trial, _ in trials(result.run) for ref in document(trial.receipt)["artifacts"]}
    assert signed
    assert there == signed
    assert all(result.run.artifacts.get(f"artifact://sha256/{digest}") for digest in signed)
    assert verify_target(result.run.path, Request(integrity_only=True)).exit_code == 0


def test_an_object_that_was_changed_or_removed_in_the_bucket_is_refused(bucket: Bucket, tmp_path: Path) -> None:
    ctx, planned, base = _prepared(tmp_path)
    package = run_on_worker(parts_of(ctx), planned, 1, str(base), "w1", bucket.url)
    assert package.lost is None
    keys = [worker_key(base).public.keyid]
    staging(ctx, planned, 1).mkdir(parents=True)
    name = bucket.names()[0]
    whole = bucket.client.get_object(Bucket=bucket.name, Key=name)["Body"].read()
    bucket.client.put_object(Bucket=bucket.name, Key=name, Body=b"spoilt")
    with pytest.raises(WorkerRefused, match="other bytes"):
        ingest(ctx, planned, 1, package, known_keys=keys, objects_url=bucket.url)
    bucket.client.delete_object(Bucket=bucket.name, Key=name)
    with pytest.raises(WorkerRefused, match="was not handed over"):
        ingest(ctx, planned, 1, package, known_keys=keys, objects_url=bucket.url)
    bucket.client.put_object(Bucket=bucket.name, Key=name, Body=whole)
    assert ingest(ctx, planned, 1, package, known_keys=keys, objects_url=bucket.url).outcome == "success"


def test_a_bucket_that_is_not_there_costs_the_attempt_and_says_why(bucket: Bucket, tmp_path: Path) -> None:
    ctx, planned, base = _prepared(tmp_path)
    package = run_on_worker(parts_of(ctx), planned, 1, str(base), "w1", "s3://nobody-made-this/objects")
    assert package.data == b""
    assert "s3://nobody-made-this" in (package.lost or "")
    assert "cannot be written" in (package.lost or "")


def test_a_worker_that_restarted_takes_no_trial_of_its_former_self(tmp_path: Path) -> None:
    ctx, planned, _ = _prepared(tmp_path)
    package = run_on_worker(parts_of(ctx), planned, 1, str(tmp_path / "gone"), "w1", None)
    assert "restarted" in (package.lost or "")
    assert not (tmp_path / "gone").exists()


def test_a_scheduler_that_is_not_there_is_an_error_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labaudit.runner.remote.cluster.CONNECT_SECONDS", 1)
    executor = DaskExecutor(f"tcp://127.0.0.1:{free_port()}", workers=1)
    path = write_experiment(tmp_path, variants=())
    with pytest.raises(EnvironmentLacks, match="no scheduler answers"):
        run_experiment(path, LabFolder(tmp_path / ".lab"), RunRequest(sign=False, executor=executor), Quiet())
