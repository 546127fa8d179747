"""`labaudit fork`: what if?"""

from __future__ import annotations

from typing import Any

import click

from labaudit.cli.options import json_option, lab_option
from labaudit.cli.replay_command import reliving_options, show_relived
from labaudit.errors import BadInput


@click.command(epilog="Example: labaudit fork --from latest/base.add-1.r0-1a2b3c4d --at step:3 --set strategy=mental")
@click.option("--from", "trial", required=True, metavar="RUN/TRIAL", help="The trial to fork.")
@click.option("--at", "selector", required=True, metavar="SELECTOR", help="step:N, seq:N or checkpoint:LABEL.")
@click.option("--set", "changes", required=True, multiple=True, metavar="K=V", help="A binding; V is JSON or text.")
@reliving_options
@lab_option
@json_option
def fork(
    trial: str, selector: str, changes: tuple[str, ...], lab_dir: str | None, as_json: bool, **options: Any
) -> None:
    """A new trial from the nearest checkpoint, or the recorded prefix, with changed bindings from a step on.

    The result is a run of its own that names its parent; the parent is never written to. What diverges before the
    step is reported: there nothing should.
    """
    from labaudit.cli.progress import ConsoleProgress
    from labaudit.pipeline.relive import fork_trial
    from labaudit.pipeline.run import RunRequest
    from labaudit.store.lab_folder import LabFolder

    lab = LabFolder.locate(lab_dir)
    run, folder = lab.find_trial(trial)
    changed = dict(_change(text) for text in changes)
    request = RunRequest(key=options["key"], sign=not options["no_sign"])
    done = fork_trial(lab, run, folder, selector, changed, request, ConsoleProgress(quiet=options["quiet"]))
    show_relived(done, as_json)


def _change(text: str) -> tuple[str, object]:
    from labaudit.core.strict_json import parse_json

    name, found, value = text.partition("=")
    if not found or not name:
        raise BadInput(f"{text!r} is no change", hint="--set NAME=VALUE")
    try:
        return name, parse_json(value.encode())
    except BadInput:
        return name, value
