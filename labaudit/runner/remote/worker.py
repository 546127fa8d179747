"""One trial on a worker: executed by the same code as on one machine, then packed and signed for."""

from __future__ import annotations

import io
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path

from labaudit.core.strict_json import parse_object
from labaudit.errors import LabauditError
from labaudit.evidence.trial_record import file_entries
from labaudit.harnesses.select import select_harness
from labaudit.planning.schedule import PlannedTrial
from labaudit.records.trial_record import TrialRecord
from labaudit.runner.attempt import Attempt, AttemptLost
from labaudit.runner.context import RunContext
from labaudit.runner.remote.objects import RemoteObjects
from labaudit.runner.remote.parts import RunParts, context_on_worker
from labaudit.runner.remote.receipt import sign_receipt, worker_key
from labaudit.store import atomic
from labaudit.store.event_log import read_lines
from labaudit.store.run_folder import TrialFolder

TRIAL, LISTED, OBJECTS, META = "trial/", "artifacts.jsonl", "artifacts/sha256/", "artifacts/meta/"


@dataclass(frozen=True)
class Package:
    """What a worker hands over: a tar of the trial's files (and its artifacts, unless a bucket has them)."""

    worker_id: str
    data: bytes
    lost: str | None = None
    """Why there is no trial: the infrastructure failed on the worker."""


def run_on_worker(
    parts: RunParts, planned: PlannedTrial, attempt: int, base: str, worker_id: str, objects_url: str | None
) -> Package:
    """Executes one attempt; nothing is left on the worker but its working copy of the run."""
    folder = Path(base)
    if not folder.is_dir():
        return Package(worker_id, b"", "restarted after the trial was given to it")
    try:
        ctx = context_on_worker(parts, folder)
        if attempt > 1:
            # The last attempt may have died with another worker on this machine; its sandbox must not outlive it.
            ctx.engine.reap()
    except LabauditError as error:
        return Package(worker_id, b"", str(error))
    shutil.rmtree(ctx.live / planned.trial_id, ignore_errors=True)
    trial = ctx.run.trial(planned.trial_id)
    shutil.rmtree(trial.path, ignore_errors=True)
    try:
        record = Attempt(ctx, planned, attempt, select_harness(ctx.resolved)).run()
        return Package(worker_id, _pack(ctx, trial, record, folder, worker_id, objects_url))
    except AttemptLost as lost:
        return Package(worker_id, b"", lost.reason)
    except LabauditError as error:
        # A store that cannot be written, a disk that is full: told in words, not as a pickled traceback.
        return Package(worker_id, b"", str(error))
    finally:
        shutil.rmtree(trial.path, ignore_errors=True)
        shutil.rmtree(ctx.live / planned.trial_id, ignore_errors=True)


def _pack(
    ctx: RunContext, trial: TrialFolder, record: TrialRecord, base: Path, worker_id: str, objects_url: str | None
) -> bytes:
    # Record, grades and list of artifacts are the coordinator's to write: it knows whom it trusts.
    listed = trial.artifacts.read_bytes()
    references = [str(parse_object(line)["ref"]) for line in read_lines(trial.artifacts)]
    for path in (trial.trial_record, trial.grades, trial.artifacts):
        path.unlink()
    facts = ctx.engine_facts
    receipt = sign_receipt(
        record,
        file_entries(trial.path, list(trial.files())),
        references,
        key=worker_key(base),
        worker_id=worker_id,
        engine=(ctx.engine.name, str(facts.get("version", "unknown"))),
        image=ctx.image_id if ctx.resolved.runtime.image.id is not None else None,
    )
    atomic.write_bytes(trial.receipt, receipt.to_bytes(), durable=False)
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in trial.files():
            _add(archive, f"{TRIAL}{path.relative_to(trial.path).as_posix()}", path)
        info = tarfile.TarInfo(LISTED)
        info.size = len(listed)
        archive.addfile(info, io.BytesIO(listed))
        remote = RemoteObjects(objects_url) if objects_url else None
        for reference in references:
            path, meta = ctx.run.artifacts.path(reference), ctx.run.artifacts.meta_path(reference)
            if remote is not None:
                remote.upload(path)
            else:
                _add(archive, OBJECTS + path.name, path)
            _add(archive, META + meta.name, meta)
    return sink.getvalue()


def _add(archive: tarfile.TarFile, name: str, path: Path) -> None:
    info = tarfile.TarInfo(name)
    info.size = path.stat().st_size
    info.mode = 0o644
    with path.open("rb") as stream:
        archive.addfile(info, stream)
