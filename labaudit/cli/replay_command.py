"""`labaudit replay`: would it happen again?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labaudit.cli.options import json_option, lab_option, print_json

if TYPE_CHECKING:
    from labaudit.pipeline.relive import Relived


def reliving_options(command: Any) -> Any:
    """Options that `replay` and `fork` share."""
    for option in (
        click.option("--quiet", is_flag=True, help="No progress."),
        click.option("--no-sign", is_flag=True, help="Seal without a signature."),
        click.option("--key", type=click.Path(path_type=Path), help="Sign with this key instead of the lab's own."),
    ):
        command = option(command)
    return command


@click.command(epilog="Example: labaudit replay latest/base.add-1.r0-1a2b3c4d --strict")
@click.argument("trial", metavar="RUN/TRIAL")
@click.option("--strict", is_flag=True, help="Answer every call from the record, and fail at the first that differs.")
@reliving_options
@lab_option
@json_option
@click.pass_context
def replay(
    ctx: click.Context, /, trial: str, strict: bool, lab_dir: str | None, as_json: bool, **options: Any
) -> None:
    """Re-execute a trial as its level allows and report every divergence; the result is a run of its own.

    sdk_full: recorded boundaries answer every call, and any divergence ends with 1. Below that the trial runs again,
    live, and what differs is reported step by step.
    """
    from labaudit.cli.progress import ConsoleProgress
    from labaudit.pipeline.relive import replay_trial
    from labaudit.pipeline.run import RunRequest
    from labaudit.store.lab_folder import LabFolder

    lab = LabFolder.locate(lab_dir)
    run, folder = lab.find_trial(trial)
    request = RunRequest(key=options["key"], sign=not options["no_sign"])
    done = replay_trial(lab, run, folder, request, ConsoleProgress(quiet=options["quiet"]), strict=strict)
    show_relived(done, as_json)
    ctx.exit(1 if not done.holds and done.mode == "boundaries" else 0)


def show_relived(done: Relived, as_json: bool) -> None:
    """The child, and where it parted from its parent."""
    if as_json:
        print_json(
            {
                "run_id": done.result.run.run_id,
                "path": str(done.result.run.path),
                "parent": {
                    "run_id": done.parent.record.ids.run_id,
                    "trial_id": done.parent.record.ids.trial_id,
                    "manifest_digest": done.parent.manifest_digest,
                },
                "mode": done.mode,
                **done.comparison.as_json(),
            }
        )
        return
    click.echo(f"run        {done.result.run.run_id}")
    click.echo(f"parent     {done.parent.record.ids.run_id}/{done.parent.record.ids.trial_id}")
    click.echo(f"compared   {done.comparison.compared} items by {done.mode}: {done.comparison.total} diverge")
    for item in done.comparison.listed[:10]:
        at = f"step {item.step_index}: " if item.step_index is not None else ""
        click.echo(f"  {at}{item.sentence}")
        click.echo(f"    expected {item.expected or 'nothing'}")
        click.echo(f"    observed {item.observed or 'nothing'}")
    if done.comparison.total > 10:
        click.echo(f"  and {done.comparison.total - 10} more, see divergence.json in {done.result.run.path}")
