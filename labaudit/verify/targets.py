"""What a caller names to what it is: a run folder, a bundle, a site, a session or a single-trial proof."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from labaudit.attest.proofs import HEADER, MAX_PROOF
from labaudit.core.ids import safe_name
from labaudit.errors import BadInput
from labaudit.store.lab_folder import LabFolder
from labaudit.verify.request import Request
from labaudit.verify.sources import CannotRead, FolderSource
from labaudit.verify.verdict import Finding, Report, StepResult
from labaudit.verify.verify_run import verify_run

_ZIP = b"PK"
_RUN = {"manifest.json", "resolved_experiment.json", "schedule.jsonl"}


def locate(name: str, lab: LabFolder) -> Path:
    """A path as it stands, else a session of the lab by id, else a run by id, prefix or `latest`."""
    if not name:
        raise BadInput("the target is an empty name", hint="name a run, a bundle, a site, a session or a proof")
    path = Path(name)
    try:
        os.lstat(path)
    except (OSError, ValueError):
        session = lab.sessions / name
        return session if safe_name(name) == name and session.is_dir() else lab.find_run(name).path
    return path


def verify_target(path: Path, request: Request) -> Report:
    """The report on whatever stands at `path`."""
    try:
        # The named path itself may be a link; nothing inside it may.
        mode = path.stat().st_mode
    except OSError as error:
        return _unreadable(path, f"cannot be read: {error.strerror}")
    if stat.S_ISDIR(mode):
        return _verify_folder(path, request)
    if not stat.S_ISREG(mode):
        return Report(str(path), "unknown", [_only(Finding("special_file", str(path), "is no file and no folder"))])
    return _verify_file(path, request)


def _verify_folder(path: Path, request: Request) -> Report:
    try:
        names = {entry.name for entry in FolderSource(path).entries("")}
    except CannotRead as error:
        return _unreadable(path, error.finding.message)
    if names >= _RUN:
        # Whatever else lies there: a stray file must not turn a run into another kind of target.
        return verify_run(FolderSource(path), request, target=str(path))
    if "site.sigstore.json" in names or {"index.json", "index.html"} <= names:
        from labaudit.verify.verify_site import verify_site

        return verify_site(FolderSource(path), request, target=str(path))
    if "session.json" in names:
        from labaudit.verify.verify_session import verify_session

        return verify_session(FolderSource(path), request, target=str(path))
    return verify_run(FolderSource(path), request, target=str(path))


def _verify_file(path: Path, request: Request) -> Report:
    source = FolderSource(path.resolve().parent)
    try:
        with source.open(path.resolve().name) as stream:
            start = stream.read(len(HEADER))
    except CannotRead as error:
        return _unreadable(path, error.finding.message)
    if start.startswith(_ZIP):
        from labaudit.verify.verify_bundle import verify_bundle

        return verify_bundle(path, request)
    if start == HEADER.encode() or path.suffix == ".tlog-proof":
        from labaudit.verify.verify_proof import verify_proof

        try:
            return verify_proof(source.read(path.resolve().name, MAX_PROOF), request, target=str(path))
        except CannotRead as error:
            return _unreadable(path, error.finding.message)
    raise BadInput(
        "is no run folder, bundle, site, session or single-trial proof",
        where=str(path),
        hint="labaudit bundle makes a .zip, attestations/proofs holds a run's .tlog-proof files",
    )


def _unreadable(path: Path, message: str) -> Report:
    return Report(str(path), "unknown", [_only(Finding("unreadable", str(path), message))])


def _only(finding: Finding) -> StepResult:
    return StepResult(1, "the target can be read", (finding,))
