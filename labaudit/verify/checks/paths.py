"""Is everything in the folder a plain file that something accounts for?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from labaudit.attest.derived_files import SUMS_NAME, TRUSTED_ROOT_NAME
from labaudit.attest.keys import PublicKey
from labaudit.attest.layout import LAYOUT_NAME, STEPS, link_name
from labaudit.attest.statements import PREDICATE_TYPES
from labaudit.verify.run_view import RunView
from labaudit.verify.sources import CannotRead, Entry, Source
from labaudit.verify.verdict import Finding

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_OWN_FOLDERS = {"trials", "artifacts", "attestations"}


def is_safe_path(path: str) -> bool:
    """True for a relative path that stays inside its folder and reads the same everywhere."""
    parts = path.split("/")
    return not (
        any(part in ("", ".", "..") for part in parts) or _CONTROL.search(path) or "\\" in path or ":" in parts[0]
    )


def plain_files(source: Source, what: str) -> Iterator[str | Finding]:
    """The path of every regular file below a source, and a finding for everything else that stands there."""
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            entries = source.entries(folder)
        except CannotRead as error:
            yield error.finding
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}".lstrip("/")
            if entry.kind == "folder":
                waiting.append(path)
            else:
                yield path if entry.kind == "file" else _not_plain(path, entry, what)


def every_path_is_accounted_for(view: RunView) -> Iterator[Finding]:
    """No links, no special files, nothing that no signature covers."""
    if view.manifest is None:
        yield from _kinds_only(view, "")
        return
    expected = set(view.listed) | {"manifest.json"}
    yield from _folder(view, "", expected, apart=_OWN_FOLDERS)
    yield from _trials(view)
    yield from _artifacts(view)
    yield from _attestations(view)


def _trials(view: RunView) -> Iterator[Finding]:
    if not view.schedule_is_known:
        yield from _kinds_only(view, "trials")
        return
    known = set(view.trial_ids)
    for entry in _entries(view, "trials"):
        path = f"trials/{entry.name}"
        if entry.kind != "folder":
            yield _odd_kind(path, entry) or Finding("extra_file", path, "trials/ holds only folders of trials")
        elif entry.name not in known:
            yield Finding("extra_file", path, "no scheduled trial has this name")
        else:
            record = view.record(entry.name)
            if record is None:
                yield from _kinds_only(view, path)
            else:
                files = {f"{path}/{item['path']}" for item in record["files"]}
                yield from _folder(view, path, files | {f"{path}/trial_record.json"})


def _artifacts(view: RunView) -> Iterator[Finding]:
    totals = view.totals
    for entry in _entries(view, "artifacts"):
        path = f"artifacts/{entry.name}"
        if entry.kind != "folder" or entry.name not in {"sha256", "meta"}:
            yield _odd_kind(path, entry) or Finding("extra_file", path, "artifacts/ holds only sha256/ and meta/")
            continue
        if totals is None:
            yield from _kinds_only(view, path)
            continue
        suffix = "" if entry.name == "sha256" else ".json"
        for item in _entries(view, path):
            full = f"{path}/{item.name}"
            name = item.name.removesuffix(suffix) if suffix else item.name
            if item.kind != "file":
                yield _odd_kind(full, item) or Finding("extra_file", full, "artifacts are files")
            elif full not in view.listed and not _is_covered(name, item.name, suffix, totals.artifacts):
                yield Finding("extra_file", full, "no list of artifacts names it")


def _is_covered(name: str, whole: str, suffix: str, artifacts: set[bytes]) -> bool:
    try:
        return whole == name + suffix and name == name.lower() and bytes.fromhex(name) in artifacts
    except ValueError:
        return False


def _attestations(view: RunView) -> Iterator[Finding]:
    expected = {f"attestations/{name}" for name in expected_names(view)}
    yield from _folder(view, "attestations", expected, apart={"proofs"})
    if not view.schedule_is_known:
        yield from _kinds_only(view, "attestations/proofs")
        return
    proofs = {f"attestations/proofs/{trial_id}.tlog-proof" for trial_id in view.trial_ids}
    yield from _folder(view, "attestations/proofs", proofs)


def expected_names(view: RunView) -> set[str]:
    """The file names that may stand directly under attestations/."""
    names = {f"{kind}.sigstore.json" for kind in PREDICATE_TYPES}
    names |= {f"{view.run_id}.intoto.jsonl", LAYOUT_NAME, "checkpoint", TRUSTED_ROOT_NAME, SUMS_NAME}
    key = layout_key(view)
    if key is not None:
        names |= {link_name(step.name, key) for step in STEPS}
    else:
        pattern = re.compile(rf"({'|'.join(step.name for step in STEPS)})\.[0-9a-f]{{8}}\.link")
        names |= {name for name in view.attestation_files if pattern.fullmatch(name)}
    return names


def layout_key(view: RunView) -> PublicKey | None:
    """The layout's key as the run statement gives it."""
    parameters = view.run_parameters
    return None if parameters is None else PublicKey.from_exact_pem(str(parameters["layout_key"]))


def _folder(view: RunView, folder: str, expected: set[str], *, apart: Set[str] = frozenset()) -> Iterator[Finding]:
    """Everything below `folder` but the folders in `apart` must be expected."""
    for path, entry in _below(view, folder, apart):
        odd = _odd_kind(path, entry)
        if odd is not None:
            yield odd
        elif path not in expected:
            yield Finding("extra_file", path, "nothing accounts for this file")


def _kinds_only(view: RunView, folder: str) -> Iterator[Finding]:
    """Links and special files below `folder`, where what is expected cannot be known."""
    for path, entry in _below(view, folder, frozenset()):
        if odd := _odd_kind(path, entry):
            yield odd


def _below(view: RunView, folder: str, apart: Set[str]) -> Iterator[tuple[str, Entry]]:
    """All that is no folder below `folder`; a list of work, because folders may nest deeper than calls can."""
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        deeper = []
        for entry in _entries(view, current):
            path = f"{current}/{entry.name}".lstrip("/")
            if entry.kind != "folder":
                yield path, entry
            elif current != folder or entry.name not in apart:
                deeper.append(path)
        waiting += reversed(deeper)


def _entries(view: RunView, folder: str) -> list[Entry]:
    try:
        return view.source.entries(folder)
    except CannotRead as error:
        view.source.odd[folder] = error.finding
        return []


def _odd_kind(path: str, entry: Entry) -> Finding | None:
    return _not_plain(path, entry, "run") if entry.kind in ("link", "special") else None


def _not_plain(path: str, entry: Entry, what: str) -> Finding:
    if entry.kind == "link":
        return Finding("link_found", path, f"a link stands in the {what}")
    return Finding("special_file", path, f"a FIFO, socket or device stands in the {what}")
