"""`labaudit bundle`: a run as one zip that anyone can verify as it is."""

from __future__ import annotations

import json
from pathlib import Path

import click

from labaudit.attest.bundle_zip import write_bundle
from labaudit.core.digest import hash_file
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder


@click.command()
@click.argument("run")
@click.option("--out", type=click.Path(path_type=Path), help="The zip to write (default: RUN_ID.zip here).")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.option("--lab-dir", type=click.Path(path_type=Path), help="The lab folder (default: .lab).")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
def bundle(run: str, out: Path | None, force: bool, lab_dir: Path | None, as_json: bool) -> None:
    """Write RUN as a zip with the same bytes on every machine; `labaudit verify` takes it as it is.

    Example: labaudit bundle latest --out results.zip
    """
    folder = LabFolder.locate(lab_dir).find_run(run)
    name = _run_id(folder)
    target = out or Path(f"{name}.zip")
    if target.exists() and not force:
        raise BadInput("is there already", where=str(target), hint="name another --out, or use --force")
    count = write_bundle(folder.path, name, target)
    sha256, size = hash_file(target)
    if as_json:
        click.echo(json.dumps({"path": str(target), "files": count, "size": size, "sha256": sha256}))
    else:
        click.echo(f"{target}  {count} files, {size} bytes, sha256:{sha256}")
    if not folder.sealed:
        click.echo("labaudit: this run is not sealed, so the bundle is for debugging and will not verify", err=True)
    else:
        click.echo(f"check it: labaudit verify {target} --key PUB", err=True)


def _run_id(folder: RunFolder) -> str:
    """The id that the manifest gives, so that a renamed folder gives the same zip."""
    if folder.sealed:
        return str(parse_object(atomic.read_bytes(folder.manifest), where=str(folder.manifest)).get("run_id"))
    return folder.path.resolve().name
