"""Steps of an author who rewrites more than one file: whole logs, lists, tables and keys (see tampering.py)."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from labaudit.attest.keys import PrivateKey
from labaudit.attest.manifest import build_manifest
from labaudit.attest.run_reader import read_totals
from labaudit.attest.seal import sign_run
from labaudit.attest.signers import KeySigner
from labaudit.core.canonical import canonical_bytes
from labaudit.core.clock import FixedClock
from labaudit.evidence.trial_record import artifact_lines
from labaudit.store import atomic
from labaudit.store.event_log import EventLog, LogIdentity

if TYPE_CHECKING:
    from tests.conformance.verify.tampering import Spoiled

CLOCK = datetime(2026, 11, 18, 10, tzinfo=UTC)


def rewrite_log(run: Spoiled, trial: str, events: list[dict[str, Any]], attempt: int = 0) -> None:
    """A trial's log made anew with these events and payloads, well chained; `attempt` makes that of a lost attempt."""
    folder = run.run.trial(run.name(trial))
    record = json.loads(folder.trial_record.read_bytes())
    place = folder.attempt(attempt) if attempt else folder.path
    for name in ("events.jsonl", "events.head"):
        (place / name).unlink(missing_ok=True)
    identity = LogIdentity(
        **record["ids"], attempt=attempt or record["attempt"], resolved_digest=record["resolved_digest"]
    )
    log = EventLog(place / "events.jsonl", identity, clock=FixedClock(CLOCK))
    rows = [json.loads(line) for line in folder.artifacts.read_bytes().splitlines()]
    references = {row["ref"]: row["role"] for row in rows}
    for event in events:
        payload = event.get("payload")
        reference = None if payload is None else run.run.artifacts.put(canonical_bytes(payload), "application/json")
        if reference is not None:
            references.setdefault(reference, "event payload")
        log.append(event["type"], payload_ref=reference)
    log.seal(place / "events.head")
    atomic.write_lines(folder.artifacts, list(artifact_lines(run.run.artifacts, references)))
    if not attempt:
        head = json.loads((place / "events.head").read_bytes())
        record["events"] = {key: head[key] for key in ("count", "size", "sha256", "head", "tree_root")}
        atomic.write_json(folder.trial_record, record)


def also_list_artifact(run: Spoiled, trial: str, of: str, meta_sha256: str) -> None:
    """A trial's list also names an object of another trial, with another sidecar."""
    lines = run.run.trial(run.name(of)).artifacts.read_bytes().splitlines()
    row = next(json.loads(line) for line in lines if run.artifact.encode() in line)
    path = run.run.trial(run.name(trial)).artifacts
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    rows.append({**row, "meta_sha256": meta_sha256})
    atomic.write_lines(path, sorted(rows, key=lambda item: str(item["ref"])))


def leave_out_the_last_trial(run: Spoiled) -> None:
    """Schedule, folder and table lose the last trial, and the totals are counted again."""
    lines = run.run.schedule.read_bytes().splitlines(keepends=True)
    shutil.rmtree(run.run.trial(json.loads(lines[-1])["trial_id"]).path)
    atomic.write_bytes(run.run.schedule, b"".join(lines[:-1]))
    table = json.loads(run.run.inclusion.read_bytes())
    table["rows"].pop()
    counts = Counter(row["status"] for row in table["rows"])
    statuses = {status: counts[status] for status in ("included", "excluded", "lost")}
    table["totals"] = {"scheduled": len(table["rows"]), **statuses}
    atomic.write_json(run.run.inclusion, table)


def reseal_as(run: Spoiled, version: str) -> None:
    """Manifest and signatures anew, as if another version of labaudit had made the run."""
    folder, tool = run.run, {"name": "labaudit", "version": version}
    before = json.loads(folder.manifest.read_bytes())
    folder.manifest.unlink()
    shutil.rmtree(folder.attestations)
    atomic.write_json(folder.attestation, {**json.loads(folder.attestation.read_bytes()), "tool": tool})
    made = build_manifest(
        folder,
        read_totals(folder),
        run_id=before["run_id"],
        created_at=before["created_at"],
        resolved_digest=before["resolved_digest"],
    )
    atomic.write_json(folder.manifest, {**made, "tool": tool})
    sign_run(folder, KeySigner(run.signing), log_key=run.log_key)


def layout_key_of_another(run: Spoiled) -> None:
    """The trusted key signs statements that name somebody else's key for layout and links."""
    shutil.rmtree(run.run.attestations)
    sign_run(run.run, KeySigner(run.signing), log_key=run.log_key, layout_key=PrivateKey.generate())


STEPS: dict[str, Callable[..., None]] = {
    step.__name__: step
    for step in (rewrite_log, also_list_artifact, leave_out_the_last_trial, reseal_as, layout_key_of_another)
}
