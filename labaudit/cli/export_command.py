"""`labaudit export`: a run's results in another tool's format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from labaudit.cli.options import json_option, lab_option, print_json


@click.command()
@click.argument("format_name", metavar="FORMAT", type=click.Choice(["every-eval-ever"]))
@click.argument("run")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for one file per variant [default: stdout].")
@click.option("--organization", required=True, help="Who publishes the results.")
@click.option(
    "--relationship",
    type=click.Choice(["first_party", "third_party", "collaborative", "other"]),
    default="other",
    show_default=True,
    help="How the publisher stands to the models.",
)
@lab_option
@json_option
def export(format_name: str, run: str, lab_dir: str | None, as_json: bool, **options: Any) -> None:
    """A run's results in another tool's format: FORMAT is every-eval-ever, one JSON document per variant.

    Example: labaudit export every-eval-ever latest --organization "Example Lab" --out exported
    """
    from labaudit.importers.every_eval_ever import Publisher, export_run
    from labaudit.store import atomic
    from labaudit.store.lab_folder import LabFolder

    found = LabFolder.locate(lab_dir).find_run(run)
    documents = []
    for variant in export_run(found, Publisher(options["organization"], options["relationship"])):
        if variant.left_out:
            names = ", ".join(variant.left_out)
            click.echo(f"{variant.variant_id}: no trial has a value of {names}; left out", err=True)
        if options["out"] is None:
            documents.append(variant.document)
            continue
        path = options["out"] / f"{variant.variant_id}.json"
        atomic.write_json(path, variant.document)
        if not as_json:
            click.echo(str(path))
        documents.append({"variant": variant.variant_id, "path": str(path)})
    if as_json or options["out"] is None:
        print_json(documents)
