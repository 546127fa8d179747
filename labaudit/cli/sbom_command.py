"""`labaudit sbom`: bills of materials of a run's image and harness, made again and compared with the stored ones."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from labaudit.attest.sbom import SbomReport, describe_harness, describe_image
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput, Contradiction, EnvironmentLacks
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("run")
@click.option("--image", type=_PATH, help="The image as a docker-save archive, a tar or a folder (default: by its id).")
@click.option("--lockfile", type=_PATH, help="The harness's lockfile (default: as the run keeps it).")
@click.option("--out", type=_PATH, help="Write the documents here; the run itself is never written to.")
@click.option("--lab-dir", type=_PATH, help="The lab folder (default: .lab).")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
def sbom(
    run: str, image: Path | None, lockfile: Path | None, out: Path | None, lab_dir: Path | None, as_json: bool
) -> None:
    """Read the image of RUN again, and compare its packages with the stored bills of materials.

    Ends with 1 when a stored bill lists other packages than the image holds.

    Example: labaudit sbom latest --out sbom/
    """
    folder = LabFolder.locate(lab_dir).find_run(run)
    runtime: Any = parse_object(atomic.read_bytes(folder.resolved), where=str(folder.resolved))["runtime"]
    with tempfile.TemporaryDirectory(prefix="labaudit-sbom-") as temporary:
        lockfile = lockfile or _kept_lockfile(folder, runtime["harness"], Path(temporary) / "lockfile")
        report = _describe(Path(temporary), runtime, image, lockfile)
        rows = [_compare(folder, Path(temporary), name) for name in report.written]
        if out is not None:
            for name in report.written:
                atomic.write_bytes(out / name, (Path(temporary) / name).read_bytes())
    if as_json:
        click.echo(json.dumps({"documents": rows, "missing": report.missing}))
    else:
        for row in rows:
            click.echo(f"{row['name']:<18} {row['packages']:>5} packages  {row['result']}")
        for item in report.missing:
            click.echo(f"missing: {item['subject']}: {item['reason']}", err=True)
    if any(row["result"] == "differs" for row in rows):
        click.get_current_context().exit(1)


def _kept_lockfile(run: RunFolder, harness: Any, place: Path) -> Path | None:
    """The declared lockfile as it stands in the harness source that the run keeps."""
    declared, source, archive = harness.get("lockfile"), harness.get("source"), harness.get("source_archive_ref")
    if declared is None or source is None or archive is None or not run.artifacts.has(archive):
        return None
    name = os.path.relpath(declared, source)
    try:
        with tarfile.open(fileobj=io.BytesIO(run.artifacts.get(archive))) as kept:
            found = kept.extractfile(name)
            if found is None:
                return None
            atomic.write_bytes(place / Path(name).name, found.read())
    except (KeyError, tarfile.TarError):
        return None
    return place / Path(name).name


def _describe(folder: Path, runtime: Any, image: Path | None, lockfile: Path | None) -> SbomReport:
    report, created = SbomReport(), datetime.now(UTC)
    digest, harness = runtime["image"]["id"], runtime["harness"]
    if digest is None:
        report.lacks("image", "the engine used no image")
    else:
        with _image_source(digest, image) as source:
            describe_image(report, folder, runtime["image"]["requested"] or "image", digest, source, created=created)
    name = harness.get("source") or harness["command"][0]
    describe_harness(report, folder, name, harness.get("source_digest"), lockfile, created=created)
    return report


@contextmanager
def _image_source(digest: str, given: Path | None) -> Iterator[Path]:
    """The image's files: what was given (its id must fit), the cache's archive, or what the engine saves."""
    from labaudit.engines.images.archive import read_archive
    from labaudit.engines.images.cache import ImageCache

    if given is not None:
        if not given.exists():
            raise BadInput("there is no such file or folder", where=str(given))
        if given.is_file() and read_archive(given).id != digest:
            raise Contradiction(f"is not the image {digest} that the run used", where=str(given))
        yield given
        return
    cached = ImageCache().find(digest)
    if cached is not None:
        yield cached.archive
        return
    with tempfile.TemporaryDirectory(prefix="labaudit-image-") as folder:
        target = Path(folder) / "image.tar"
        _save_from_engine(digest, target)
        yield target


def _save_from_engine(digest: str, target: Path) -> None:
    hint = "pass the image: --image ARCHIVE"
    program = shutil.which("docker")
    if program is None:
        raise EnvironmentLacks(f"the image {digest} is not here", hint=hint)
    done = subprocess.run([program, "save", "-o", str(target), digest], capture_output=True, check=False)
    if done.returncode != 0:
        raise EnvironmentLacks(f"the image {digest} is not here", hint=hint)


def _compare(run: RunFolder, fresh: Path, name: str) -> dict[str, Any]:
    ours = _packages(fresh / name)
    stored = run.sbom / name
    if not stored.is_file():
        return {"name": name, "packages": len(ours), "result": "not stored"}
    theirs = _packages(stored)
    row: dict[str, Any] = {"name": name, "packages": len(ours), "result": "equal" if ours == theirs else "differs"}
    if ours != theirs:
        row |= {"only_stored": sorted(theirs - ours)[:20], "only_found": sorted(ours - theirs)[:20]}
    return row


def _packages(path: Path) -> set[str]:
    """The package URLs that a document lists."""
    document: Any = parse_object(atomic.read_bytes(path), where=str(path))
    if "bomFormat" in document:
        return {str(item.get("purl", item.get("name"))) for item in document.get("components", [])}
    found = set()
    for package in document.get("packages", []):
        for reference in package.get("externalRefs", []):
            if reference.get("referenceType") == "purl":
                found.add(str(reference.get("referenceLocator")))
    return found
