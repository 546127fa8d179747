"""Do the receipts of workers hold: signed by the key they name, about this trial, with the digests of its record?

The run's own signer cannot mend a changed receipt: the worker's key is not the signer's. A signer who throws a receipt
away and signs another with a key of its own is caught only where the plan names the keys of trusted workers.
"""

from __future__ import annotations

from collections.abc import Iterator

from labaudit.attest.receipt_signature import signature_problem
from labaudit.attest.run_reader import Json
from labaudit.core.canonical import is_canonical
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput
from labaudit.records.schema_registry import fast_validator, validate
from labaudit.verify.run_view import MAX_DOCUMENT, RunView
from labaudit.verify.sources import CannotRead
from labaudit.verify.verdict import Finding

RECEIPT, EXECUTOR = "receipt.json", "executor.json"
# The role of what only the log of a lost attempt names; the coordinator closed that log.
LOST_ATTEMPT = "lost attempt"
# Written by the coordinator after it took the trial in; a worker cannot sign for them.
_COORDINATORS = frozenset({RECEIPT, "grades.json", "artifacts.jsonl"})


def no_worker(view: RunView) -> str:
    """Why there is nothing to look at."""
    counted = view.totals
    return "no trial was executed by a worker" if counted is not None and not counted.by_workers else ""


def receipts_of_workers_hold(view: RunView) -> Iterator[Finding]:
    """Every completed trial of a worker has its receipt, and the receipt is of this trial and these files."""
    listed: set[tuple[str, str]] | None = None
    if any(record["evidence_origin"] == "worker" for _, record in view.records()):
        listed, problems = _workers(view)
        yield from problems
    for trial_id, record in view.records():
        path = f"trials/{trial_id}/{RECEIPT}"
        carried = any(entry["path"] == RECEIPT for entry in record["files"])
        if record["evidence_origin"] != "worker":
            if carried:
                yield Finding("receipt_mismatch", path, f"the record says {record['evidence_origin']}, not worker")
            continue
        if record["status"] != "completed":
            continue
        if not carried:
            yield Finding("receipt_missing", path, "a worker executed this trial, and nobody signed for it")
            continue
        receipt = _read(view, path)
        if isinstance(receipt, Finding):
            yield receipt
        elif receipt is not None:
            yield from _findings(view, trial_id, record, receipt, listed)


def _workers(view: RunView) -> tuple[set[tuple[str, str]] | None, list[Finding]]:
    """(worker, key) of everyone that executor.json lists; None without a readable list."""
    if EXECUTOR not in view.listed:
        return None, [Finding("file_missing", EXECUTOR, "a run with trials of workers lists them in its manifest")]
    value = view.document(EXECUTOR)
    rows = value.get("workers") if value is not None else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return None, [Finding("document_malformed", EXECUTOR, "lists no workers")]
    found, problems = set(), []
    resolved = view.document("resolved_experiment.json")
    trusted = resolved["executor"]["trusted_workers"] if _is_plan(resolved) and resolved is not None else None
    for row in rows:
        found.add((str(row.get("worker_id")), str(row.get("key_id"))))
        if trusted is not None and row.get("trusted") is not (row.get("key_id") in trusted):
            what = f"worker {row.get('worker_id')}: trusted is {row.get('trusted')}, the plan says otherwise"
            problems.append(Finding("receipt_mismatch", EXECUTOR, what))
    return found, problems


def _is_plan(value: Json | None) -> bool:
    return value is not None and fast_validator("resolved_experiment_v0_3").is_valid(value)


def _read(view: RunView, path: str) -> Json | Finding | None:
    try:
        data = view.source.read(path, MAX_DOCUMENT)
        value = parse_object(data, where=path)
    except CannotRead:
        return None  # the step that hashes the trial's files names it
    except BadInput as error:
        return Finding("receipt_malformed", path, error.what)
    if not fast_validator("receipt_v1").is_valid(value):
        first = validate("receipt_v1", value)[0]
        return Finding("receipt_malformed", path, f"{first.path}: {first.message}")
    return value if is_canonical(data) else Finding("receipt_malformed", path, "is not in canonical form")


def _findings(
    view: RunView, trial_id: str, record: Json, receipt: Json, listed: set[tuple[str, str]] | None
) -> Iterator[Finding]:
    path = f"trials/{trial_id}/{RECEIPT}"
    problem = signature_problem(receipt)
    if problem:
        yield Finding("receipt_signature", path, problem)
    for name in ("ids", "attempt", "resolved_digest", "events", "started_at", "ended_at"):
        if receipt[name] != record[name]:
            yield Finding("receipt_mismatch", path, f"its {name} is not that of the trial's record")
    if receipt["image_digest"] not in (None, record["image_digest"]):
        yield Finding("receipt_mismatch", path, f"the worker ran image {receipt['image_digest']}")
    signed = {entry["path"]: (entry["sha256"], entry["size"]) for entry in receipt["files"]}
    recorded = {entry["path"]: (entry["sha256"], entry["size"]) for entry in record["files"]}
    earlier = record["attempt"]
    by_the_worker = {name for name in recorded if name not in _COORDINATORS and not _is_earlier(name, earlier)}
    for name in sorted(signed.keys() | by_the_worker):
        if signed.get(name) != recorded.get(name):
            yield Finding("receipt_mismatch", path, f"{name[:200]} is not the file that the worker signed for")
    roles = {str(line["ref"]): line["role"] for line in view.artifact_lines(trial_id)}
    signed_for = set(receipt["artifacts"])
    extra = [ref for ref in roles if ref not in signed_for and roles[ref] != LOST_ATTEMPT]
    if extra or not signed_for <= roles.keys():
        yield Finding("receipt_mismatch", path, "the trial lists other artifacts than the worker signed for")
    if listed is not None and (receipt["worker_id"], receipt["key_id"]) not in listed:
        what = f"{EXECUTOR} lists no worker {receipt['worker_id']} with key {receipt['key_id']}"
        yield Finding("receipt_mismatch", path, what)


def _is_earlier(name: str, attempt: int) -> bool:
    """Whether a file is of an attempt that was lost before this one; its log is the coordinator's."""
    parts = name.split("/")
    if len(parts) < 3 or parts[0] != "attempts" or not parts[1].isdecimal() or len(parts[1]) > 9:
        return False
    return parts[1] == str(int(parts[1])) and 1 <= int(parts[1]) < attempt
