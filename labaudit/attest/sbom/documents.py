"""Image and harness to the files under `sbom/`, with every bill that could not be made and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from labaudit.attest.sbom.component import Component, SbomSubject
from labaudit.attest.sbom.cyclonedx_bom import cyclonedx_document
from labaudit.attest.sbom.image_packages import read_image
from labaudit.attest.sbom.lockfiles import read_lockfile
from labaudit.attest.sbom.spdx_bom import spdx_document
from labaudit.errors import BadInput, Contradiction, LabauditError
from labaudit.store import atomic


@dataclass
class SbomReport:
    """What was written, and what is missing with its reason; `missing` goes into attestation.json as it is."""

    written: list[str] = field(default_factory=list)
    missing: list[dict[str, str]] = field(default_factory=list)

    def lacks(self, subject: str, reason: str) -> None:
        """Notes a bill that could not be made."""
        self.missing.append({"subject": subject, "reason": reason})

    def insist(self) -> None:
        """For `provenance.sbom: required`: a missing bill makes the run invalid."""
        if self.missing:
            first = self.missing[0]
            raise Contradiction(
                f"an SBOM is required and the one of the {first['subject']} is missing: {first['reason']}",
                hint="set provenance.sbom to optional, or give what is missing",
            )


def describe_image(
    report: SbomReport,
    folder: Path,
    name: str,
    digest: str | None,
    source: Path | BinaryIO | None,
    *,
    created: datetime,
) -> None:
    """Writes `image.cdx.json` and `image.spdx.json` from the image's own package databases."""
    if digest is None or source is None:
        report.lacks("image", "the engine used no image" if digest is None else "the image's files cannot be read here")
        return
    try:
        packages = read_image(source)
    except LabauditError as error:
        report.lacks("image", str(error).splitlines()[0])
        return
    for manager in packages.unread:
        report.lacks("image", f"packages of {manager} are not read")
    if not packages.managers:
        report.lacks("image", "no package database was found in the image")
        return
    report.written += write_documents(
        folder, "image", SbomSubject("image", name, digest), packages.components, created=created
    )


def describe_harness(
    report: SbomReport, folder: Path, name: str, digest: str | None, lockfile: Path | None, *, created: datetime
) -> None:
    """Writes `harness.cdx.json` from the harness's lockfile."""
    if lockfile is None or digest is None:
        report.lacks("harness", "the harness declares no lockfile" if lockfile is None else "the harness has no digest")
        return
    try:
        components = read_lockfile(lockfile)
    except BadInput as error:
        report.lacks("harness", error.what)
        return
    document = cyclonedx_document(SbomSubject("harness", name, digest), components, created=created)
    atomic.write_bytes(folder / "harness.cdx.json", document)
    report.written.append("harness.cdx.json")


def write_documents(
    folder: Path, stem: str, subject: SbomSubject, components: Sequence[Component], *, created: datetime
) -> list[str]:
    """Both formats of one bill; the names that were written."""
    ordered = sorted(set(components))
    atomic.write_bytes(folder / f"{stem}.cdx.json", cyclonedx_document(subject, ordered, created=created))
    atomic.write_bytes(folder / f"{stem}.spdx.json", spdx_document(subject, ordered, created=created))
    return [f"{stem}.cdx.json", f"{stem}.spdx.json"]
