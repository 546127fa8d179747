"""A finished run folder to `manifest.json`: every run-level file by digest, and the run tree over all trial records.

Trial files stand in their trial's record and artifacts in its `artifacts.jsonl`, so the manifest stays small. Artifacts
that no trial refers to (the dataset, the harness source, a supplied SBOM) stand in the run's own `artifacts.jsonl`; one
that stands in no list is a run-level file itself, so that nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from labaudit.attest.run_reader import Json, TrialTotals
from labaudit.attest.summary import TOOL
from labaudit.core.digest import hash_file, hex_of_reference
from labaudit.store.run_folder import RunFolder

_MEDIA_TYPES = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".parquet": "application/vnd.apache.parquet",
    ".digest": "text/plain",
    ".csv": "text/csv",
}


def build_manifest(run: RunFolder, totals: TrialTotals, *, run_id: str, created_at: str, resolved_digest: str) -> Json:
    """The content of manifest.json."""
    files = [file_entry(run, path) for path in [*run.run_level_files(), *unreferenced_artifacts(run, totals)]]
    return {
        "schema_version": "manifest_v1",
        "run_id": run_id,
        "created_at": created_at,
        "tool": TOOL,
        "resolved_digest": resolved_digest,
        "run_tree": totals.tree,
        "files": sorted(files, key=lambda entry: str(entry["path"])),
    }


def file_entry(run: RunFolder, path: Path) -> Json:
    """One entry of `files`."""
    digest, size = hash_file(path)
    name = path.relative_to(run.path).as_posix()
    return {"path": name, "size": size, "sha256": digest, "media_type": media_type(name)}


def media_type(name: str) -> str:
    """The media type that a run-level file's name implies; artifacts say theirs in their sidecars."""
    if name.startswith("artifacts/sha256/"):
        return "application/octet-stream"
    if name.endswith(".cdx.json"):
        return "application/vnd.cyclonedx+json"
    if name.endswith(".spdx.json"):
        return "application/spdx+json"
    return _MEDIA_TYPES.get(Path(name).suffix, "application/octet-stream")


def unreferenced_artifacts(run: RunFolder, totals: TrialTotals) -> Iterator[Path]:
    """Objects and sidecars that no artifacts.jsonl names."""
    for reference in run.artifacts.references():
        if bytes.fromhex(hex_of_reference(reference)) not in totals.artifacts:
            yield run.artifacts.path(reference)
            yield run.artifacts.meta_path(reference)
