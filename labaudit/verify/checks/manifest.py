"""Is manifest.json well formed, and does every file that it lists have its digest?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from labaudit.core.canonical import canonical_bytes, is_canonical
from labaudit.errors import BadInput
from labaudit.records.schema_registry import fast_validator, validate
from labaudit.verify.checks.paths import is_safe_path
from labaudit.verify.run_view import MAX_DOCUMENT, RunView
from labaudit.verify.sources import CannotRead
from labaudit.verify.verdict import Finding

REQUIRED = (
    "analysis/summary.json",
    "attestation.json",
    "grades.json",
    "inclusion.json",
    "resolved_experiment.digest",
    "resolved_experiment.json",
    "schedule.jsonl",
)
SHAPES = {
    "attestation.json": "attestation_v1",
    "grades.json": "grades_v1",
    "inclusion.json": "inclusion_v1",
    "resolved_experiment.json": "resolved_experiment_v0_3",
}


def manifest_is_well_formed(view: RunView) -> Iterator[Finding]:
    """Canonical JSON of the right shape, with safe, sorted, unique paths."""
    path = "manifest.json"
    problem = view.document_problem(path)
    if problem is not None:
        if problem.code == "file_missing" and view.signed:
            yield Finding("file_missing", path, "the manifest that the attestations are about is gone")
        elif problem.code == "file_missing":
            yield Finding("manifest_missing", path, "there is no manifest")
        else:
            code = "manifest_malformed" if problem.code == "document_malformed" else problem.code
            yield Finding(code, path, problem.message)
        return
    broken = validate("manifest_v1", view.document(path))
    for item in broken[:20]:
        yield Finding("manifest_malformed", path, f"{item.path}: {item.message}")
    if view.manifest_bytes is not None and not is_canonical(view.manifest_bytes):
        yield Finding("manifest_malformed", path, "is not in canonical form")
    if not broken:
        yield from _paths(view)


def _paths(view: RunView) -> Iterator[Finding]:
    assert view.manifest is not None
    paths = [entry["path"] for entry in view.manifest["files"]]
    seen: set[str] = set()
    for path in paths:
        if not is_safe_path(path):
            yield Finding("path_unsafe", "manifest.json", f"lists {path[:200]!r}, which is no plain path inside")
        elif path in seen:
            yield Finding("path_duplicate", path, "is listed twice in manifest.json")
        elif path == "manifest.json" or path.startswith(("trials/", "attestations/")):
            yield Finding("path_misplaced", path, "does not belong into manifest.json")
        seen.add(path)
    if paths != sorted(paths):
        yield Finding("manifest_malformed", "manifest.json", "its files are not sorted by path")


def listed_files_have_their_digests(view: RunView) -> Iterator[Finding]:
    """Every file of the manifest is there, with its size and hash."""
    yield from listed_digests(view, REQUIRED, "run")


def listed_digests(view: RunView, required: Iterable[str], what: str) -> Iterator[Finding]:
    """The same for any sealed folder: what its manifest lists, and that it lists what every such folder has."""
    for path, entry in view.listed.items():
        if is_safe_path(path):
            finding = digest_finding(view, path, entry["sha256"], entry["size"])
            if finding:
                yield finding
    if view.manifest is not None:
        for path in required:
            if path not in view.listed:
                yield Finding("file_missing", path, f"every sealed {what} lists this file in its manifest")


def digest_finding(view: RunView, path: str, sha256: str, size: int) -> Finding | None:
    """What is wrong with one file, if anything."""
    try:
        found, length = view.source.hash(path, size)
    except CannotRead as error:
        return error.finding
    if length != size:
        return Finding("size_mismatch", path, f"has {length} bytes, {size} were sealed")
    if found != sha256:
        return Finding("digest_mismatch", path, f"has sha256 {found[:16]}..., {sha256[:16]}... was sealed")
    return None


def documents_have_their_shape(view: RunView) -> Iterator[Finding]:
    """The documents that claims rest on parse, are canonical and keep to their schema."""
    for path in view.listed:
        if path not in SHAPES and not (path.startswith("analysis/") and path.endswith(".json")):
            continue
        problem, value = view.document_problem(path), view.document(path)
        if problem is not None:
            if problem.code == "document_malformed":
                yield problem
            continue
        schema = SHAPES.get(path)
        if schema is not None and not fast_validator(schema).is_valid(value):
            first = validate(schema, value)[0]
            yield Finding("document_malformed", path, f"{first.path}: {first.message}")
        elif not _is_canonical_file(view, path):
            yield Finding("document_malformed", path, "is not in canonical form")


def _is_canonical_file(view: RunView, path: str) -> bool:
    try:
        return canonical_bytes(view.document(path)) == view.source.read(path, MAX_DOCUMENT)
    except BadInput:
        return False
    except CannotRead:
        return True  # it could be read just now; the step that hashes files names it
