"""`labaudit resume`: an interrupted run, from where it stopped."""

from __future__ import annotations

from typing import Any

import click

from labaudit.cli.options import json_option, lab_option
from labaudit.cli.run_command import execution_options, request_from, show_result


@click.command(epilog="Example: labaudit resume latest")
@click.argument("run")
@execution_options
@lab_option
@json_option
@click.pass_context
def resume(ctx: click.Context, /, run: str, lab_dir: str | None, as_json: bool, **options: Any) -> None:
    """Go on after a crash, a kill or Ctrl-C.

    Finished trials are kept; half-done ones become recorded lost attempts and are run again.
    """
    from labaudit.cli.progress import ConsoleProgress
    from labaudit.pipeline.run import resume_run
    from labaudit.store.lab_folder import LabFolder

    lab = LabFolder.locate(lab_dir)
    found = lab.find_run(run)
    request = request_from(options)
    result = resume_run(lab.home_of(found), found, request, ConsoleProgress(quiet=options["quiet"]))
    show_result(result, as_json, key=options["key"])
    ctx.exit(1 if result.invalid else 0)
