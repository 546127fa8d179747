"""`labaudit import-check`: does an imported run follow from the files that it keeps?"""

from __future__ import annotations

import click

from labaudit.cli.options import json_option, lab_option, print_json

SHOWN = 20


@click.command("import-check")
@click.argument("run")
@lab_option
@json_option
@click.pass_context
def import_check(ctx: click.Context, run: str, lab_dir: str | None, as_json: bool) -> None:
    """Import the files that RUN keeps once more, and compare: rows, plan, totals and findings.

    Exit code 0: the run follows from its files; 1: it differs; 2: it is no imported run. `labaudit verify` says whether
    the files are the ones that were sealed.

    Example: labaudit import-check latest
    """
    from labaudit.importers.recheck import recheck_import
    from labaudit.store.lab_folder import LabFolder

    differences = recheck_import(LabFolder.locate(lab_dir).find_run(run))
    if as_json:
        print_json({"follows": not differences, "differences": differences})
    elif differences:
        for sentence in differences[:SHOWN]:
            click.echo(sentence)
        click.echo(f"{len(differences)} difference(s)")
    else:
        click.echo("the run follows from the files that it keeps")
    ctx.exit(1 if differences else 0)
