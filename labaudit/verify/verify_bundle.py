"""A bundle zip to a report: the archive is checked as an archive, then the run inside it as a run, byte by byte."""

from __future__ import annotations

from pathlib import Path

from labaudit.verify.request import Request
from labaudit.verify.verdict import Report, StepResult
from labaudit.verify.verify_run import verify_run
from labaudit.verify.zip_layout import ArchiveRefused
from labaudit.verify.zip_source import ZipSource


def verify_bundle(path: Path, request: Request) -> Report:
    """The report on the run in an archive; nothing is unpacked to disk."""
    try:
        source = ZipSource(path)
    except ArchiveRefused as error:
        step = StepResult(0, "the archive can stand for a folder", (error.finding,))
        return Report(str(path), "bundle", [step])
    return verify_run(source, request, target=str(path), kind="bundle")
