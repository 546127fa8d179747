"""A package from a worker to a trial of the run: unpacked safely, hashed again, checked, and only then committed.

What is checked: the receipt's signature and its key, that it is about this trial and attempt, every file's digest, that
nothing is missing or extra, every artifact's digest, and the event log's chain. What cannot be checked from here is
whether the worker's sandbox was what it says; that stays the worker's word.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labaudit.core.digest import hash_file
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput, Contradiction, LabauditError
from labaudit.planning.schedule import PlannedTrial
from labaudit.records.metrics import Metrics
from labaudit.records.receipt import Receipt
from labaudit.records.trial_record import TrialRecord
from labaudit.runner.checkpoints.archive import extract
from labaudit.runner.commit import log_identity, staging, trial_ids
from labaudit.runner.context import RunContext
from labaudit.runner.remote.objects import RemoteObjects
from labaudit.runner.remote.receipt import check_receipt
from labaudit.runner.remote.worker import LISTED, META, OBJECTS, TRIAL, Package
from labaudit.runner.sealed import finish_sealed, has_result, list_artifacts
from labaudit.store import atomic
from labaudit.store.event_log import check_chain, read_lines
from labaudit.store.run_folder import TrialFolder

MAX_PACKAGE = 4 << 30
CHECKED = (
    "the worker's signature over its receipt, with the key it registered with",
    "that files, artifacts and event log have the digests in the receipt, and that nothing is missing or extra",
    "that the event log is an unbroken chain of this trial and attempt",
)
NOT_CHECKED = (
    "that the worker's sandbox, network and image were what its inventory says",
    "that the worker executed the harness at all",
)


class WorkerRefused(Exception):
    """What a worker handed over does not hold; `reason` names the worker and the defect."""

    def __init__(self, worker_id: str, reason: str) -> None:
        super().__init__(reason)
        self.worker_id = worker_id
        self.reason = f"worker {worker_id} was refused: {reason}"


def ingest(
    ctx: RunContext,
    planned: PlannedTrial,
    attempt: int,
    package: Package,
    *,
    known_keys: Sequence[str],
    objects_url: str | None = None,
) -> TrialRecord:
    """The committed trial, or WorkerRefused with nothing of the package kept."""
    with tempfile.TemporaryDirectory(prefix="ingest-", dir=ctx.live) as name:
        folder = Path(name)
        try:
            extract(io.BytesIO(package.data), folder, max_bytes=MAX_PACKAGE, where="package", make_parents=True)
            receipt = _receipt(ctx, planned, attempt, folder, known_keys)
            trial = TrialFolder(folder / TRIAL)
            list_artifacts(ctx, trial, _artifacts(ctx, folder, receipt, objects_url))
            if not has_result(trial):
                raise Contradiction("its event log is not sealed, or a file of a result is missing")
            Metrics.from_bytes(atomic.read_bytes(trial.metrics), where="metrics.json")
        except (Contradiction, BadInput) as error:
            raise WorkerRefused(package.worker_id, error.what) from error
        place = staging(ctx, planned, attempt)
        shutil.rmtree(place)
        trial.path.rename(place)
    return finish_sealed(ctx, planned, attempt, "worker")


def _receipt(ctx: RunContext, planned: PlannedTrial, attempt: int, folder: Path, keys: Sequence[str]) -> Receipt:
    trial = TrialFolder(folder / TRIAL)
    receipt = Receipt.from_bytes(atomic.read_bytes(trial.receipt), where="receipt.json")
    check_receipt(receipt, keys)
    if receipt.ids != trial_ids(ctx, planned) or receipt.attempt != attempt:
        raise Contradiction("the receipt is for another trial or attempt")
    if receipt.resolved_digest != ctx.resolved_digest:
        raise Contradiction("the receipt is for another experiment")
    if receipt.image_digest is not None and receipt.image_digest != ctx.resolved.runtime.image.id:
        raise Contradiction(f"the worker ran image {receipt.image_digest}")
    listed = {entry.path: entry for entry in receipt.files}
    found = {path.relative_to(trial.path).as_posix(): path for path in trial.files() if path != trial.receipt}
    if set(found) != set(listed) or trial.trial_record.exists():
        odd = sorted(set(found) ^ set(listed)) or ["trial_record.json"]
        raise Contradiction(f"{odd[0]} is missing or not in the receipt")
    for name, path in found.items():
        if hash_file(path) != (listed[name].sha256, listed[name].size):
            raise Contradiction(f"{name} is not what the receipt lists")
    try:
        state = check_chain(trial.events, log_identity(ctx, planned, attempt))
    except LabauditError as error:
        raise Contradiction(f"the event log does not hold: {error.what}") from error
    if receipt.events is None or state.totals() != receipt.events.to_json():
        raise Contradiction("the event log is not the one that the receipt names")
    return receipt


def _artifacts(ctx: RunContext, folder: Path, receipt: Receipt, objects_url: str | None) -> dict[str, str]:
    """Takes the artifacts into the run's store, each hashed on the way; reference to role."""
    rows = [parse_object(line, where=LISTED) for line in read_lines(folder / LISTED)]
    roles = {str(row["ref"]): str(row["role"]) for row in rows}
    if sorted(roles) != list(receipt.artifacts):
        raise Contradiction("artifacts.jsonl does not list the artifacts of the receipt")
    remote = RemoteObjects(objects_url) if objects_url else None
    for reference in roles:
        digest = reference.rpartition("/")[2]
        meta: dict[str, Any] = parse_object(
            atomic.read_bytes(folder / META / f"{digest}.json"), where=f"sidecar of {digest[:16]}…"
        )
        redaction = meta["redaction"] if isinstance(meta.get("redaction"), dict) else {"applied": False}
        if remote is not None:
            remote.fetch(digest, ctx.run.artifacts, str(meta.get("content_type")), redaction)
            continue
        path = folder / OBJECTS / digest
        if not path.is_file() or hash_file(path)[0] != digest:
            raise Contradiction(f"artifact {digest[:16]}… has other bytes than its name says, or is missing")
        with path.open("rb") as stream:
            ctx.run.artifacts.put(stream, str(meta.get("content_type")), redaction, durable=False)
    return roles
