"""A trial's folder to its record: the digest of every file, the event totals, and the list of its artifacts.

The record's exact bytes are a leaf of the run tree, so it is built the same way for a local trial, a worker's and an
imported one. `artifacts.jsonl` names each artifact that the trial refers to, with the digest of its sidecar.
"""

from __future__ import annotations

from pathlib import Path

from labaudit.core.digest import Digest, hash_file, sha256_hex
from labaudit.core.strict_json import parse_object
from labaudit.records.ids import Ids
from labaudit.records.parts import EventsTotals, FileEntry
from labaudit.records.resolved import ResolvedExperiment
from labaudit.records.trial_record import TrialHarness, TrialRecord
from labaudit.store import atomic
from labaudit.store.artifact_store import ArtifactStore
from labaudit.store.run_folder import TrialFolder


def artifact_lines(store: ArtifactStore, references: dict[str, str]) -> list[dict[str, object]]:
    """The lines of an `artifacts.jsonl`: reference -> role, sorted, each with size and the sidecar's digest."""
    lines: list[dict[str, object]] = []
    for reference, role in sorted(references.items()):
        meta = atomic.read_bytes(store.meta_path(reference))
        lines.append(
            {
                "ref": reference,
                "role": role,
                "size": store.path(reference).stat().st_size,
                "content_type": str(parse_object(meta)["content_type"]),
                "meta_sha256": sha256_hex(meta),
            }
        )
    return lines


def file_entries(folder: Path, files: list[Path]) -> tuple[FileEntry, ...]:
    """Path, size and hash of each file, relative to `folder`, sorted by path."""
    entries = []
    for path in files:
        digest, size = hash_file(path)
        entries.append(FileEntry(path=path.relative_to(folder).as_posix(), size=size, sha256=digest))
    return tuple(sorted(entries, key=lambda entry: entry.path))


def build_trial_record(
    trial: TrialFolder,
    store: ArtifactStore,
    *,
    ids: Ids,
    index: int,
    attempt: int,
    status: str,
    outcome: str | None,
    resolved: ResolvedExperiment,
    resolved_digest: str,
    started_at: str | None,
    ended_at: str | None,
    evidence_origin: str,
) -> TrialRecord:
    """The record of a folder whose other files are all in place."""
    events = None
    if trial.events_head.is_file():
        head = parse_object(atomic.read_bytes(trial.events_head), where=str(trial.events_head))
        events = EventsTotals.from_json({key: head[key] for key in ("count", "size", "sha256", "head", "tree_root")})
    network = None
    if trial.network_events.is_file():
        network = Digest.from_hex(hash_file(trial.network_events)[0])
    harness = resolved.runtime.harness
    return TrialRecord(
        ids=ids,
        index=index,
        attempt=attempt,
        status=status,  # type: ignore[arg-type]
        outcome=outcome,  # type: ignore[arg-type]
        resolved_digest=str(resolved_digest),
        started_at=started_at,
        ended_at=ended_at,
        evidence_origin=evidence_origin,  # type: ignore[arg-type]
        image_digest=resolved.runtime.image.id,
        harness=TrialHarness(source_digest=harness.source_digest, exec_digest=harness.exec_digest),
        network_evidence_digest=network,
        events=events,
        files=file_entries(trial.path, list(trial.files())),
        attempts=attempt,
    )
