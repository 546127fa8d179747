"""`labaudit site`: the static site of one or more runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labaudit.cli.options import json_option, lab_option, print_json

if TYPE_CHECKING:
    from labaudit.site.build import BuiltSite
    from labaudit.site.signing import Publisher
    from labaudit.store.lab_folder import LabFolder
    from labaudit.store.run_folder import RunFolder

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--out", type=click.Path(path_type=Path), help="The site's folder [default: sites/<run_id> in the lab].")
@click.option("--key", type=_FILE, help="The private key that signs the site [default: the lab's own].")
@click.option("--no-sign", is_flag=True, help="Neither sign the site nor enter it into the publication log.")
@click.option("--bundle/--no-bundle", default=None, help="Put a zip of each run into the site [default: if small].")
@click.option("--relatives", is_flag=True, help="Publish sealed replays, forks and parents that the lab knows, too.")
@click.option("--publish-failed", is_flag=True, help="Build even if a run does not hold; the site says so first.")
@lab_option
@json_option
def site(
    runs: tuple[str, ...],
    out: Path | None,
    key: Path | None,
    no_sign: bool,
    bundle: bool | None,
    relatives: bool,
    publish_failed: bool,
    lab_dir: str | None,
    as_json: bool,
) -> None:
    """Build the static site of one or more sealed runs (ids, prefixes, `latest` or paths).

    It opens by double-click, needs no server and no script for reading, and loads nothing from elsewhere. Each run is
    checked first; one that does not hold is refused with exit code 1.

    Example: labaudit site latest --out site
    """
    from labaudit.site import build_site
    from labaudit.store.lab_folder import LabFolder

    lab = LabFolder.locate(lab_dir)
    found = [lab.find_run(name) for name in runs]
    if relatives:
        found = _with_relatives(lab, found)
    target = out or lab.sites / (found[0].run_id if len(found) == 1 else "all")
    built = build_site(
        [run.path for run in found],
        target,
        publisher=None if no_sign else _publisher(lab, key),
        allow_failed=publish_failed,
        bundle=bundle,
        progress=_progress if sys.stderr.isatty() else None,
    )
    _say(built, as_json)


def _with_relatives(lab: LabFolder, runs: list[RunFolder]) -> list[RunFolder]:
    """The runs and whatever is related to them, near or far, as far as it lies in the lab and is sealed."""
    from labaudit.runner.lineage import family_of

    there = set(lab.run_ids())
    found = {run.run_id: run for run in runs}
    waiting = list(runs)
    while waiting:
        family = family_of(lab, waiting.pop(0))
        names = [str(row["run_id"]) for row in (family.parent, *family.children) if row is not None]
        for name in names:
            if name in there and name not in found and lab.find_run(name).sealed:
                found[name] = lab.find_run(name)
                waiting.append(found[name])
    return list(found.values())


def _publisher(lab: LabFolder, key: Path | None) -> Publisher | None:
    """The lab's keys where there are any; a lab that never signed is not given a key by looking at a run."""
    from labaudit.site.signing import Publisher

    publisher = Publisher.of_lab(lab, key)
    if publisher is None:
        click.echo(f"the site is not signed: {lab.signing_key} is not there (labaudit keys new)", err=True)
    return publisher


def _progress(done: int, total: int) -> None:
    if done == total or done % 100 == 0:
        click.echo(f"\r{done} of {total} trials", nl=done == total, err=True)


def _say(built: BuiltSite, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "site": str(built.path),
                "index_sha256": built.index_sha256,
                "files": built.files,
                "bytes": built.size,
                "runs": list(built.run_ids),
                "verdicts": list(built.verdicts),
                "signer": built.signer,
            }
        )
        return
    signed = f"signed by {built.signer}" if built.signer else "not signed"
    click.echo(f"{built.files} files, {built.size / 1e6:.1f} MB, {signed}", err=True)
    click.echo(str(built.front_page.resolve()))
