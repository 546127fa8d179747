"""`labaudit control`: an operator's wish to the control file of trials that run now."""

from __future__ import annotations

import json
from pathlib import Path

import click

from labaudit.errors import BadInput
from labaudit.runner.live_file import request, running_trials
from labaudit.store.lab_folder import LabFolder


@click.command()
@click.argument("run", metavar="RUN")
@click.argument("action", type=click.Choice(["continue", "stop", "checkpoint"]))
@click.option("--trial", "trial", metavar="T", help="One trial, by id or unique prefix; default: all that run.")
@click.option("--label", metavar="L", help="Name of the checkpoint.")
@click.option("--lab-dir", metavar="DIR", help="The lab folder (default: LABAUDIT_DIR, else .lab).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def control(run: str, action: str, trial: str | None, label: str | None, lab_dir: str | None, as_json: bool) -> None:
    """Tell running trials of RUN to continue, stop or checkpoint at the end of their next step.

    The runner writes the control file and records the request; a harness obeys when it next looks. A trial that does
    not run is an error (exit code 2). A run that is sealed has none that do.

    Example: labaudit control latest checkpoint --label before-tools
    """
    lab = LabFolder.locate(lab_dir)
    if label is not None and action != "checkpoint":
        raise BadInput(f"--label names a checkpoint; {action} takes none")
    run_name, _, inner = (run, "", "") if "/" not in run or Path(run).is_dir() else run.rpartition("/")
    found = lab.find_run(run_name)
    lab, run_id = lab.home_of(found), found.run_id
    chosen = _choose(sorted(running_trials(lab, run_id)), trial or inner or None, lab.named(run_id))
    for trial_id in chosen:
        request(lab, run_id, trial_id, action, label)
    if as_json:
        click.echo(json.dumps({"run_id": run_id, "action": action, "label": label, "trials": chosen}))
    else:
        for trial_id in chosen:
            click.echo(f"{trial_id}: {action} asked for" + (f" ({label})" if label else ""))


def _choose(running: list[str], wanted: str | None, named: str) -> list[str]:
    run_id, hint = named.partition(" ")[0], f"`labaudit status {named}` lists what runs"
    if not running:
        raise BadInput("no trial of this run is running", where=run_id, hint=hint)
    if wanted is None:
        return running
    found = [wanted] if wanted in running else [trial for trial in running if trial.startswith(wanted)]
    if len(found) != 1:
        how_many = "no running trial" if not found else f"{len(found)} running trials"
        raise BadInput(f"{wanted!r} fits {how_many}", where=run_id, hint=hint)
    return found
