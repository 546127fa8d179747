"""`labaudit contract`: Task, Scenario, Run and Score records against their numbered rules, and what is frozen."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import orjson

from labaudit.contracts.file_check import check_paths
from labaudit.contracts.frozen import frozen_contracts
from labaudit.contracts.harness_kit import KIT, write_kit
from labaudit.contracts.record_check import KINDS, Kind
from labaudit.contracts.report import CheckReport
from labaudit.errors import BadInput

_STDIN = "-"


@click.group()
def contract() -> None:
    """Check Task, Scenario, Run and Score records.

    Example: labaudit contract check runs.jsonl
    """


@contract.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--kind", type=click.Choice(list(KINDS)), help="What the records are; told from their keys otherwise.")
@click.option("--show", type=click.IntRange(min=0), default=1000, show_default=True, help="Findings to list at most.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
def check(files: tuple[Path, ...], kind: Kind | None, show: int, as_json: bool) -> None:
    """Every rule on every record in FILE: one record, an array, one per line, or a run folder; - is standard input.

    Exit code 1: a record breaks its contract; 2: something is no JSON. Warnings alone are 0. After 100000 errors the
    check stops and says where.

    Example: labaudit contract check .lab/runs/run-20261118T070000Z-0a1b2c3d --json
    """
    named = [path for path in files if str(path) != _STDIN]
    for path in named:
        if not path.exists():
            raise BadInput("there is no such file or folder", where=str(path))
    piped = sys.stdin.buffer.read() if len(named) < len(files) else None
    report = check_paths(named, kind=kind, keep=show, standard_input=piped)
    if as_json:
        sys.stdout.buffer.write(orjson.dumps(report.as_json()) + b"\n")
    else:
        _show(report)
    if not report.records and not report.unreadable_count:
        click.echo("labaudit: nothing was checked: the input holds no record", err=True)
    click.get_current_context().exit(report.exit_code)


@contract.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
def kit(folder: Path) -> None:
    """Write the scenario executor and the example modules below the harness source FOLDER.

    A sandbox has no labaudit in it, so a harness that runs modules carries them as plain files (standard library only).

    Example: labaudit contract kit examples/booking/harness
    """
    written = write_kit(folder)
    click.echo(f"{len(written)} files in {folder / KIT}")


@contract.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON array on stdout.")
def frozen(as_json: bool) -> None:
    """List the frozen contracts: name, version, digest.

    Example: labaudit contract frozen --json
    """
    rows = [row.as_json() for row in frozen_contracts()]
    if as_json:
        sys.stdout.buffer.write(orjson.dumps(rows) + b"\n")
    else:
        for row in rows:
            click.echo(f"{row['name']:18} {row['version']:4} {row['digest']}")


def _show(report: CheckReport) -> None:
    for source, message in report.unreadable:
        click.echo(f"{source}: {message}", err=True)
    if report.unreadable_count > len(report.unreadable):
        click.echo(f"and {report.unreadable_count - len(report.unreadable)} places more that hold no JSON", err=True)
    for source, finding in report.findings:
        hint = f" ({finding.hint})" if finding.hint else ""
        click.echo(f"{source}: {finding.severity} {finding.rule} at {finding.path}: {finding.message}{hint}")
    left_out = report.errors + report.warnings - len(report.findings)
    if left_out:
        click.echo(f"and {left_out} findings more (--show lists them)")
    if report.stopped_at is not None:
        click.echo(f"stopped at {report.stopped_at}: with so many errors the rest was not looked at")
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(report.records.items())) or "no"
    click.echo(f"{kinds} records: {report.errors} errors, {report.warnings} warnings")
