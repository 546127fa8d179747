"""`labaudit doctor`: what this machine can do, line by line, with the fix for what it cannot."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from labaudit.cli.options import json_option, lab_option, print_json
from labaudit.engines.checks.self_check import Check
from labaudit.store.lab_folder import LabFolder

_MARKS = {"ok": ("ok", "green"), "degraded": ("degraded", "yellow"), "missing": ("missing", "red")}
_ENGINES = click.Choice(["auto", "docker", "bubblewrap", "process"])


@click.command()
@click.option("--engine", type=_ENGINES, default="auto", show_default=True, help="auto: docker and bubblewrap.")
@click.option("--egress", is_flag=True, help="Also attack each engine's network: canaries on this machine only.")
@lab_option
@json_option
@click.pass_context
def doctor(ctx: click.Context, engine: str, egress: bool, lab_dir: str | None, as_json: bool) -> None:
    """Check engines, kernel, sandbox, schemas, keys and clock; every line is ok, degraded or missing, with the fix.

    Ends with 4 where no engine can confine a trial. The first call builds the bundled image.

    Example: labaudit doctor --egress
    """
    from labaudit.cli.doctor_checks import examine

    lab = LabFolder.locate(Path(lab_dir) if lab_dir else None)
    checks, usable = examine(engine, lab, egress=egress, say=lambda text: click.echo(text, err=True))
    if as_json:
        rows = [dataclasses.asdict(check) for check in checks]
        print_json({"usable_engines": list(usable), "checks": rows})
    else:
        for check in checks:
            _print(check)
        click.echo(f"usable engines: {', '.join(usable) or 'none'}", err=True)
    ctx.exit(0 if usable else 4)


def _print(check: Check) -> None:
    word, colour = _MARKS[check.status]
    click.echo(f"{click.style(f'{word:<9}', fg=colour)} {check.area}: {check.name}: {check.detail}")
    if check.fix:
        click.echo(f"{'':<9}   {check.fix}")
