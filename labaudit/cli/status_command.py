"""`labaudit status` and `labaudit runs`: what is running, what there is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from labaudit.cli.options import json_option, lab_option, print_json
from labaudit.errors import BadInput

if TYPE_CHECKING:
    from labaudit.store.lab_folder import LabFolder
    from labaudit.store.run_folder import RunFolder


@click.command(epilog="Example: labaudit status latest")
@click.argument("run", required=False)
@lab_option
@json_option
def status(run: str | None, lab_dir: str | None, as_json: bool) -> None:
    """What is running, and how far it is; with RUN, that run alone, its parent and its replays and forks."""
    from labaudit.runner.lineage import family_of
    from labaudit.store.lab_folder import LabFolder

    lab = LabFolder.locate(lab_dir)
    found = None if run is None else lab.find_run(run)
    lab = lab if found is None else lab.home_of(found)
    if found is not None and not (found.resolved.exists() or found.path.parent == lab.runs_folder):
        raise BadInput("is no run folder", where=str(found.path), hint=f"it has no {found.resolved.name}")
    waiting = (item for item in lab.runs() if not item.sealed or item.half_signed)
    rows = [_row(lab, item) for item in ((found,) if found else waiting)]
    family = None if found is None else family_of(lab, found)
    if family is not None:
        rows[0] |= {"parent": family.parent, "children": list(family.children)}
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo("nothing is running or waiting to be resumed")
    for row in rows:
        click.echo(_line(row))
        for trial in row["running"]:
            click.echo(f"  running {trial}")
        if row["state"] == "interrupted":
            click.echo(f"  go on with: labaudit resume {lab.named(row['run_id'])}")
        if row["state"] == "not_started":
            click.echo("  its start was interrupted; start it again with labaudit run")
    for line in family.lines() if family is not None else ():
        click.echo(f"  {line}")


@click.command(epilog="Example: labaudit runs --json")
@lab_option
@json_option
def runs(lab_dir: str | None, as_json: bool) -> None:
    """List the runs of this lab, oldest first."""
    from labaudit.store.lab_folder import LabFolder

    lab = LabFolder.locate(lab_dir)
    rows = [_row(lab, run) for run in lab.runs()]
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo(f"no run in {lab.path}; start one: labaudit run experiment.yaml")
    for row in rows:
        click.echo(_line(row))


def _line(row: dict[str, Any]) -> str:
    return f"{row['run_id']}  {row['state']:<11}  {row['done']}/{row['scheduled']} trials  {row['experiment']}"


def _row(lab: LabFolder, run: RunFolder) -> dict[str, Any]:
    from labaudit.core.strict_json import parse_object
    from labaudit.errors import LabauditError
    from labaudit.runner.execution import is_running
    from labaudit.runner.live_file import running_trials
    from labaudit.store import atomic

    try:
        resolved = parse_object(atomic.read_bytes(run.resolved), where=str(run.resolved))
        experiment, scheduled = str(resolved["experiment"]["id"]), int(resolved["schedule"]["trials"])  # type: ignore[index]
    except (LabauditError, KeyError, TypeError, ValueError):
        experiment, scheduled = "unreadable", 0
    done = run.sealed and not run.half_signed
    state = "sealed" if done else "running" if is_running(lab, run.run_id) else _left_as(run, experiment)
    return {
        "run_id": run.run_id,
        "experiment": experiment,
        "state": state,
        "signed": run.bundle("run").is_file(),
        "scheduled": scheduled,
        "done": _count(run),
        "running": list(running_trials(lab, run.run_id)) if state == "running" else [],
    }


def _left_as(run: RunFolder, experiment: str) -> str:
    """Why nobody works on an unsealed run: only an interrupted one can be resumed."""
    if not (run.resolved.is_file() and run.resolved_digest.is_file()):
        return "not_started"
    return "unreadable" if experiment == "unreadable" else "interrupted"


def _count(run: RunFolder) -> int:
    if not run.trials.is_dir():
        return 0
    with os.scandir(run.trials) as entries:
        return sum(1 for _ in entries)
