"""Makes a small run whose trials a worker executed: the real worker, ingest, receipts and signatures."""

from __future__ import annotations

from pathlib import Path

from labaudit.attest.keys import PrivateKey
from labaudit.attest.seal import sign_resolve_link
from labaudit.attest.trust_store import LabKeys, ensure_keys
from labaudit.core.clock import SystemClock
from labaudit.engines.process_engine import ProcessEngine
from labaudit.evidence.trial_record import file_entries
from labaudit.pipeline.run import finish_run, resolve_experiment
from labaudit.records.trial_record import TrialRecord
from labaudit.runner.commit import staging
from labaudit.runner.context import RunOptions
from labaudit.runner.execution import open_context
from labaudit.runner.remote.cluster import Cluster, WorkerIdentity
from labaudit.runner.remote.description import describe
from labaudit.runner.remote.ingest import ingest
from labaudit.runner.remote.parts import parts_of
from labaudit.runner.remote.receipt import sign_receipt, worker_key
from labaudit.runner.remote.worker import run_on_worker
from labaudit.runner.run_start import create_run, read_schedule
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder, TrialFolder
from tests.experiments import Quiet, document, write_experiment


def make_worker_run(top: Path) -> tuple[RunFolder, LabKeys]:
    """A sealed and signed run of two trials in `top/.lab`; the worker's key stays in `top/worker`."""
    resolution, engine, _ = resolve_experiment(write_experiment(top, variants=()))
    engine.close()
    lab, base = LabFolder(top / ".lab"), top / "worker"
    base.mkdir()
    keys = ensure_keys(lab)
    run = create_run(lab, resolution, SystemClock())
    ctx = open_context(lab, run, ProcessEngine(), options=RunOptions(), evidence_origin="worker")
    key_id = worker_key(base).public.keyid
    one = WorkerIdentity("tcp://127.0.0.1:1", "w1", key_id, "here", str(base))
    describe(ctx, Cluster(None, "tcp://127.0.0.1:2", None, {one.address: one}))
    for planned in read_schedule(run):
        package = run_on_worker(parts_of(ctx), planned, 1, str(base), "w1", None)
        staging(ctx, planned, 1).mkdir(parents=True)
        ingest(ctx, planned, 1, package, known_keys=[key_id])
    sign_resolve_link(run, keys.signing)
    finish_run(run, ctx.resolved, keys, SystemClock(), Quiet())
    return run, keys


def sign_receipt_anew(trial: TrialFolder, key: PrivateKey, *, worker_id: str = "w1") -> None:
    """A receipt that holds in itself, over the trial's files as they are now."""
    before = document(trial.receipt)
    names = {entry["path"] for entry in before["files"]}
    files = [entry for entry in file_entries(trial.path, list(trial.files())) if entry.path in names]
    record = TrialRecord.from_bytes(trial.trial_record.read_bytes())
    engine = (before["engine"]["name"], before["engine"]["version"])
    receipt = sign_receipt(
        record, files, before["artifacts"], key=key, worker_id=worker_id, engine=engine, image=before["image_digest"]
    )
    atomic.write_bytes(trial.receipt, receipt.to_bytes())
