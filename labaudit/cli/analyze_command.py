"""`labaudit analyze`: a run's analysis, written; a sealed run's analysis, recomputed and compared."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labaudit.cli.options import json_option, lab_option, print_json
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder

if TYPE_CHECKING:
    from labaudit.analysis.recompute import Recomputed
    from labaudit.analysis.runner import Analysis


@click.command()
@click.argument("run_name", metavar="RUN")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the computed files; a run is left as it is.")
@click.option("--coverage", is_flag=True, help="Simulate how often such intervals hold the truth at this run's size.")
@click.option("--sets", type=click.IntRange(10, 100_000), default=2000, show_default=True, help="Simulated data sets.")
@click.option("--processes", type=click.IntRange(1, 64), help="Processes that read trials; the result is the same.")
@lab_option
@json_option
@click.pass_context
def analyze(
    ctx: click.Context,
    run_name: str,
    out: Path | None,
    coverage: bool,
    sets: int,
    processes: int | None,
    lab_dir: str | None,
    as_json: bool,
) -> None:
    """Analyse RUN as its plan says, or recompute a sealed one and compare.

    RUN is an id, a unique prefix, `latest` or a path. A run that is not sealed gets its analysis/ folder. A sealed run
    is only read: everything is computed again from its trial files and compared with what was sealed; a difference
    ends with 1. With --out the computed files go to that folder and nowhere else.

    \b
    Example: labaudit analyze latest
    Example: labaudit analyze latest --out again --json
    Example: labaudit analyze latest --coverage --sets 1000
    """
    run = LabFolder.locate(lab_dir).find_run(run_name)
    if coverage:
        _show_coverage(run, sets, as_json)
        return
    from labaudit.analysis.recompute import recompute, refuse_occupied

    if out is not None:
        refuse_occupied(out)
    workers = processes or os.cpu_count() or 1
    if run.sealed:
        recomputed = recompute(run, processes=workers, keep_in=out)
        _show(recomputed.analysis, _comparison_of(recomputed), as_json)
        ctx.exit(0 if recomputed.agrees else 1)
    _show(_analyse(run, out, workers), {"sealed": False}, as_json)


def _analyse(run: RunFolder, out: Path | None, workers: int) -> Analysis:
    from labaudit.analysis.recompute import write_elsewhere
    from labaudit.analysis.runner import AnalysisRunner, analyse_run

    if out is None:
        return analyse_run(run, processes=workers)
    analysis = AnalysisRunner(run, processes=workers).run()
    write_elsewhere(analysis, out)
    return analysis


def _comparison_of(recomputed: Recomputed) -> dict[str, Any]:
    files = [verdict.as_json() for verdict in recomputed.files]
    return {"sealed": True, "agrees": recomputed.agrees, "files": files}


def _show(analysis: Analysis, facts: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        results = {"summary": analysis.summary.to_json(), "comparisons": analysis.comparisons.to_json()}
        print_json({**facts, **results})
        return
    from labaudit.analysis.tables import note, summary_lines

    for line in summary_lines(analysis.summary, analysis.comparisons.comparisons):
        click.echo(line)
    if facts["sealed"]:
        click.echo("")
        for file in facts["files"]:
            if file["status"] != "equal":
                for line in note(f"{file['path']} {file['status']}: {file['detail']}"):
                    click.echo(line)
        equal = sum(file["status"] == "equal" for file in facts["files"])
        verdict = "agrees with its trials" if facts["agrees"] else "does NOT follow from the run's trials"
        click.echo(f"The sealed analysis {verdict}: {equal} of {len(facts['files'])} files are equal byte for byte.")


def _show_coverage(run: RunFolder, sets: int, as_json: bool) -> None:
    from labaudit.analysis.coverage import coverage_table
    from labaudit.analysis.effects.plan import settings_of
    from labaudit.analysis.runner import read_resolved

    resolved, _ = read_resolved(run)
    size = (resolved.dataset.count, resolved.design.replications)
    rows = coverage_table([size], settings_of(resolved), sets=sets)
    if as_json:
        print_json({"rows": [row.as_json() for row in rows]})
        return
    from labaudit.analysis.tables import coverage_lines, note

    for line in coverage_lines(rows):
        click.echo(line)
    told = (
        f"{sets} simulated experiments per row, intervals at {rows[0].level:g}. `coverage` is how often the interval "
        "held the true effect, `percentile` the same for the percentile bootstrap, `unwarned` among the experiments "
        "whose output carried no warning about its interval."
    )
    for line in note(told, mark="="):
        click.echo(line)
