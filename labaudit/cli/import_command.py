"""`labaudit import`: another tool's results as a run whose evidence is labelled as imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labaudit.cli.options import json_option, lab_option, print_json
from labaudit.errors import BadInput
from labaudit.importers.readers import FORMATS

if TYPE_CHECKING:
    from labaudit.pipeline.import_run import ImportResult

GRADES = ("isolation", "replay", "interpretability", "comparability", "provenance")
SHOWN = 12


@click.command("import", epilog="Example: labaudit import terminal-bench results/ --only '*claude*' --baseline droid")
@click.argument("format_name", metavar="FORMAT", type=click.Choice(FORMATS))
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--only", multiple=True, metavar="PATTERN", help="Import these variants only; may be repeated.")
@click.option("--baseline", metavar="VARIANT", help="The arm that the others are compared with [default: the first].")
@click.option("--map", "mapping", multiple=True, metavar="FIELD=COLUMN", help="For tables: which column holds what.")
@click.option("--reader", type=click.Choice(["raw", "inspect"]), default="raw", show_default=True, help="For inspect.")
@click.option("--out", type=click.Path(path_type=Path), help="Put the run folder here instead of into the lab.")
@click.option("--no-sign", is_flag=True, help="Seal without a signature.")
@click.option("--key", type=click.Path(path_type=Path), help="Sign with this key instead of the lab's own.")
@click.option("--quiet", is_flag=True, help="No progress.")
@lab_option
@json_option
def import_results(
    format_name: str, paths: tuple[Path, ...], lab_dir: str | None, as_json: bool, **options: Any
) -> None:
    """Another tool's results as a run: graded, analysed, signed, and labelled as imported.

    FORMAT is terminal-bench, inspect, harbor, swebench or table. Several submissions become variants that are compared.
    Published totals are counted again from rows; what does not fit is listed, and stands on the first page of the site.
    """
    from labaudit.cli.progress import ConsoleProgress
    from labaudit.importers.protocol import ReadOptions
    from labaudit.pipeline.import_run import import_run
    from labaudit.pipeline.run import RunRequest
    from labaudit.store.lab_folder import LabFolder

    done = import_run(
        format_name,
        paths,
        LabFolder.locate(lab_dir),
        RunRequest(key=options["key"], sign=not options["no_sign"]),
        ConsoleProgress(quiet=options["quiet"]),
        options=ReadOptions(options["only"], _mapping(options["mapping"]), options["reader"]),
        baseline=options["baseline"],
        out=options["out"],
    )
    if as_json:
        print_json(_document(done))
    else:
        _show(done)


def _mapping(given: tuple[str, ...]) -> dict[str, str]:
    mapping: dict[str, str] = {}
    for text in given:
        name, separator, column = text.partition("=")
        if not separator or not name or not column:
            raise BadInput(f"{text!r} is no mapping", where="--map", hint="write FIELD=COLUMN, such as task=id")
        mapping[name] = column
    return mapping


def _document(done: ImportResult) -> dict[str, Any]:
    result = done.result
    return {
        "run_id": done.run_id,
        "path": str(result.run.path),
        "grades": {name: getattr(result.grades, name).value for name in GRADES},
        "totals": result.inclusion.totals.to_json(),
        "signer": result.sealed.signer,
        "published_totals": [total.as_json() for total in done.imported.results.totals],
        "findings": [finding.as_json() for finding in done.imported.findings],
    }


def _show(done: ImportResult) -> None:
    result, totals = done.result, done.result.inclusion.totals
    click.echo(f"run        {done.run_id}")
    click.echo(f"trials     {totals.scheduled} imported, {len(done.imported.plan.variant_ids)} variants")
    for name in GRADES:
        click.echo(f"{name:<17} {getattr(result.grades, name).value}")
    click.echo(f"signed by  {result.sealed.signer or 'nobody'}")
    click.echo(f"folder     {result.run.path}")
    findings = done.imported.findings
    for finding in findings[:SHOWN]:
        click.echo(f"{finding.severity}: {finding.sentence}", err=True)
    if len(findings) > SHOWN:
        click.echo(f"and {len(findings) - SHOWN} findings more in import_report.json", err=True)
