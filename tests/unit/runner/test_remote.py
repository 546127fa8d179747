"""Trials on workers: what they hand over is checked before it counts, and a worker that lies is refused and named."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from labaudit.attest.keys import PrivateKey
from labaudit.cli import invoke
from labaudit.engines.process_engine import ProcessEngine
from labaudit.errors import EnvironmentLacks, PolicyUnmet
from labaudit.pipeline.run import RunRequest, resolve_experiment, run_experiment
from labaudit.planning.schedule import PlannedTrial
from labaudit.runner.commit import staging
from labaudit.runner.context import RunContext, RunOptions
from labaudit.runner.execution import open_context
from labaudit.runner.remote.cluster import connect, require_tls
from labaudit.runner.remote.executor import DaskExecutor
from labaudit.runner.remote.ingest import WorkerRefused, ingest
from labaudit.runner.remote.parts import parts_of
from labaudit.runner.remote.receipt import worker_key
from labaudit.runner.remote.worker import Package, run_on_worker
from labaudit.runner.run_start import create_run, read_schedule
from labaudit.runner.trial import take_over
from labaudit.store.event_log import EventLog
from labaudit.store.lab_folder import LabFolder
from labaudit.verify.request import Request
from labaudit.verify.targets import verify_target
from tests.experiments import Quiet, document, trials, write_experiment


@dataclass
class Handover:
    """A package that a worker made for the first of two trials, not yet taken in."""

    ctx: RunContext
    planned: PlannedTrial
    other: PlannedTrial
    base: Path
    package: Package
    parts: object

    @property
    def key(self) -> str:
        return worker_key(self.base).public.keyid

    def take(self, package: Package, key: str | None = None) -> object:
        staging(self.ctx, self.planned, 1).mkdir(parents=True, exist_ok=True)
        return ingest(self.ctx, self.planned, 1, package, known_keys=[key or self.key])


@pytest.fixture
def handover(tmp_path: Path) -> Handover:
    from labaudit.core.clock import SystemClock

    path = write_experiment(tmp_path, variants=())
    resolution, engine, _ = resolve_experiment(path)
    engine.close()
    lab = LabFolder(tmp_path / ".lab")
    run = create_run(lab, resolution, SystemClock())
    ctx = open_context(lab, run, ProcessEngine(), options=RunOptions(), evidence_origin="worker")
    first, second = read_schedule(run)
    parts, base = parts_of(ctx), tmp_path / "worker"
    base.mkdir()
    package = run_on_worker(parts, first, 1, str(base), "w1", None)
    assert package.lost is None
    return Handover(ctx, first, second, base, package, parts)


def _repacked(package: Package, change: Callable[[str, bytes], bytes | None]) -> Package:
    sink = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(package.data)) as old, tarfile.open(fileobj=sink, mode="w") as new:
        for member in old:
            data = change(member.name, old.extractfile(member).read())  # type: ignore[union-attr]
            if data is not None:
                member.size = len(data)
                new.addfile(member, io.BytesIO(data))
    return replace(package, data=sink.getvalue())


def test_an_honest_package_becomes_a_trial_with_its_receipt(handover: Handover) -> None:
    handover.take(handover.package)
    trial = handover.ctx.run.trial(handover.planned.trial_id)
    record = document(trial.trial_record)
    assert (record["evidence_origin"], record["outcome"]) == ("worker", "success")
    receipt = document(trial.receipt)
    assert receipt["worker_id"] == "w1"
    listed = {entry["path"]: entry["sha256"] for entry in record["files"]}
    assert all(listed[entry["path"]] == entry["sha256"] for entry in receipt["files"])
    caps = document(trial.grades)["isolation"]["caps"]
    assert any(cap["rule"] == "I14" for cap in caps)


LIES: dict[str, tuple[Callable[[str, bytes], bytes | None], str]] = {
    "an artifact changed after it was hashed": (
        lambda name, data: data + b"x" if name.startswith("artifacts/sha256/") else data,
        "other bytes than its name says",
    ),
    "an artifact left out": (
        lambda name, data: None if name.startswith("artifacts/sha256/") else data,
        "missing",
    ),
    "a file changed": (
        lambda name, data: data.replace(b"success", b"failure") if name == "trial/metrics.json" else data,
        "metrics.json is not what the receipt lists",
    ),
    "a file left out": (lambda name, data: None if name == "trial/stdout.log" else data, "stdout.log is missing"),
    "an event changed": (
        lambda name, data: data.replace(b"harness.exited", b"harness.exitex") if "events" in name else data,
        "is not what the receipt lists",
    ),
    "a receipt changed": (
        lambda name, data: data.replace(b'"w1"', b'"w2"') if name.endswith("receipt.json") else data,
        "signature does not hold",
    ),
    "no receipt": (lambda name, data: None if name.endswith("receipt.json") else data, "there is no such file"),
    "a list that names other artifacts": (
        lambda name, data: b"" if name == "artifacts.jsonl" else data,
        "does not list the artifacts",
    ),
}


@pytest.mark.parametrize("name", sorted(LIES))
def test_a_worker_that_lies_is_refused_and_named(name: str, handover: Handover) -> None:
    change, said = LIES[name]
    with pytest.raises(WorkerRefused) as refused:
        handover.take(_repacked(handover.package, change))
    assert "worker w1 was refused" in refused.value.reason
    assert said in refused.value.reason
    assert not handover.ctx.run.trial(handover.planned.trial_id).path.exists()


def test_a_key_that_the_worker_did_not_come_with_is_refused(handover: Handover) -> None:
    with pytest.raises(WorkerRefused, match="unknown key"):
        handover.take(handover.package, key=PrivateKey.generate().public.keyid)


def test_the_log_of_another_trial_is_refused(handover: Handover) -> None:
    other = run_on_worker(handover.parts, handover.other, 1, str(handover.base), "w1", None)  # type: ignore[arg-type]
    with pytest.raises(WorkerRefused, match="another trial"):
        handover.take(other)


def test_a_log_that_was_never_sealed_is_refused(handover: Handover, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = EventLog.seal

    def leave_open(log: EventLog, head: Path) -> object:
        log._sealed = True
        return whole(log, head)

    monkeypatch.setattr(EventLog, "seal", leave_open)
    package = run_on_worker(handover.parts, handover.planned, 1, str(handover.base), "w1", None)  # type: ignore[arg-type]
    with pytest.raises(WorkerRefused, match="not sealed"):
        handover.take(package)


def test_a_package_that_was_taken_in_is_finished_by_whoever_resumes(
    handover: Handover, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("labaudit.runner.remote.ingest.finish_sealed", lambda *_: None)
        handover.take(handover.package)
    number, record = take_over(replace(handover.ctx, evidence_origin="local"), handover.planned)
    assert number == 1
    assert record is not None
    assert (record.evidence_origin, record.outcome, record.attempt) == ("worker", "success", 1)
    trial = handover.ctx.run.trial(handover.planned.trial_id)
    receipt = document(trial.receipt)
    assert (record.started_at, record.ended_at) == (receipt["started_at"], receipt["ended_at"])


def test_artifacts_can_be_handed_over_through_any_store_that_fsspec_reaches(handover: Handover, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/bucket"
    parts, planned = handover.parts, handover.planned
    package = run_on_worker(parts, planned, 1, str(handover.base), "w1", url)  # type: ignore[arg-type]
    staging(handover.ctx, planned, 1).mkdir(parents=True, exist_ok=True)
    spoilt = next(path for path in (tmp_path / "bucket").rglob("*") if path.is_file())
    whole = spoilt.read_bytes()
    spoilt.write_bytes(b"spoilt")
    with pytest.raises(WorkerRefused, match="other bytes"):
        ingest(handover.ctx, planned, 1, package, known_keys=[handover.key], objects_url=url)
    spoilt.write_bytes(whole)
    record = ingest(handover.ctx, planned, 1, package, known_keys=[handover.key], objects_url=url)
    assert record.outcome == "success"


@pytest.mark.parametrize("address", ["tcp://192.0.2.1:8786", "192.0.2.1:8786", "tcp://example.org:8786"])
def test_a_plain_connection_beyond_this_machine_is_refused(address: str) -> None:
    with pytest.raises(PolicyUnmet, match="TLS"):
        require_tls(address)


def test_tls_and_loopback_are_fine() -> None:
    for address in ("tls://192.0.2.1:8786", "tcp://127.0.0.1:8786", "tcp://localhost:8786", "tcp://[::1]:8786"):
        require_tls(address)


def test_a_cluster_started_for_the_run_completes_it_and_says_what_it_could_not_check(tmp_path: Path) -> None:
    path = write_experiment(tmp_path)
    lab = LabFolder(tmp_path / ".lab")
    request = RunRequest(sign=False, executor=DaskExecutor(None, workers=2))
    result = run_experiment(path, lab, request, Quiet())
    assert result.inclusion.totals.included == 4
    assert {record.evidence_origin for _, record in trials(result.run)} == {"worker"}
    described = document(result.run.path / "executor.json")
    assert len(described["workers"]) == 2
    assert described["not_checked"]
    assert verify_target(result.run.path, Request(integrity_only=True)).exit_code == 0


@pytest.mark.parametrize(
    ("scheduler", "code"),
    [("tcp://cluster.example:8786", 3), ("garbage", 2), ("tls://host:99999", 2), ("tls://[::1:8786", 2)],
)
def test_a_scheduler_that_cannot_be_meant_is_refused_before_there_is_a_run(
    tmp_path: Path, scheduler: str, code: int
) -> None:
    write_experiment(tmp_path)
    words = ["run", str(tmp_path / "experiment.yaml"), "--lab-dir", str(tmp_path / ".lab")]
    assert invoke([*words, "--executor", "dask", "--scheduler", scheduler]) == code
    assert LabFolder(tmp_path / ".lab").run_ids() == []


def test_tls_without_certificates_is_told_in_words() -> None:
    with pytest.raises(EnvironmentLacks, match="has no certificates"), connect("tls://127.0.0.1:1", 1):
        pass
