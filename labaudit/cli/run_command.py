"""`labaudit run`: an experiment to a sealed, signed run."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labaudit.cli.options import json_option, lab_option, print_json

if TYPE_CHECKING:
    from labaudit.pipeline.run import RunRequest, RunResult

GRADES = ("isolation", "replay", "interpretability", "comparability", "provenance")


def execution_options(command: Any) -> Any:
    """Options that `run` and `resume` share."""
    for option in (
        click.option("--quiet", is_flag=True, help="No progress."),
        click.option("--no-sign", is_flag=True, help="Seal without a signature."),
        click.option("--key", type=click.Path(path_type=Path), help="Sign with this key instead of the lab's own."),
        click.option(
            "--allow-missing-harness-manifest",
            is_flag=True,
            help="Go on without a manifest: the level is then cli_basic, and the grades say so.",
        ),
        click.option("--objects", metavar="URL", help="With dask: artifacts are handed over through this fsspec URL."),
        click.option("--scheduler", metavar="ADDR", help="With dask: tls://host:port; without, a cluster is started."),
        click.option(
            "--executor",
            type=click.Choice(["local", "dask"]),
            default="local",
            show_default=True,
            help="Where trials run: on this machine, or on the workers of a Dask cluster (extra labaudit[dask]).",
        ),
        click.option("--workers", type=click.IntRange(1, 1024), help="Trials at a time [default: one per core]."),
    ):
        command = option(command)
    return command


EXAMPLES = """\b
Example: labaudit run experiment.yaml --engine bubblewrap --workers 2
Example: labaudit run experiment.yaml --executor dask --scheduler tls://cluster.example:8786
"""


@click.command(epilog=EXAMPLES)
@click.argument("experiment", type=click.Path(path_type=Path))
@click.option("--engine", type=click.Choice(["auto", "docker", "bubblewrap", "process"]), help="Over the file's own.")
@execution_options
@lab_option
@json_option
@click.pass_context
def run(
    ctx: click.Context, /, experiment: Path, engine: str | None, lab_dir: str | None, as_json: bool, **options: Any
) -> None:
    """Run an experiment: trials, evidence, grades, analysis, signature.

    Exit codes: 0 done; 1 the run is invalid by its own rules (its evidence is sealed all the same); 2 bad input;
    4 the environment lacks something; 130 interrupted, `labaudit resume` goes on.
    """
    from labaudit.cli.progress import ConsoleProgress
    from labaudit.pipeline.run import run_experiment
    from labaudit.store.lab_folder import LabFolder

    request = request_from(options, engine)
    result = run_experiment(experiment, LabFolder.locate(lab_dir), request, ConsoleProgress(quiet=options["quiet"]))
    show_result(result, as_json, key=options["key"])
    ctx.exit(1 if result.invalid else 0)


def request_from(options: dict[str, Any], engine: str | None = None) -> RunRequest:
    """The request that the options mean."""
    from labaudit.pipeline.run import RunRequest
    from labaudit.runner.context import RunOptions

    workers = options["workers"] or max(1, os.cpu_count() or 1)
    chosen = RunOptions(workers=workers, allow_missing_harness_manifest=options["allow_missing_harness_manifest"])
    executor = None
    if options["executor"] == "dask":
        from labaudit.runner.remote.executor import DaskExecutor

        executor = DaskExecutor(options["scheduler"], workers=workers, objects_url=options["objects"])
    elif options["scheduler"] or options["objects"]:
        raise click.UsageError("--scheduler and --objects go with --executor dask")
    return RunRequest(
        engine=engine, options=chosen, key=options["key"], sign=not options["no_sign"], executor=executor
    )


def show_result(result: RunResult, as_json: bool, *, key: Path | None = None) -> None:
    """Run id, grades, where to look, and what invalidates the run."""
    grades = {name: getattr(result.grades, name).value for name in GRADES}
    grades["integration_level"] = result.grades.integration_level.observed
    if as_json:
        print_json(
            {
                "run_id": result.run.run_id,
                "path": str(result.run.path),
                "grades": grades,
                "totals": result.inclusion.totals.to_json(),
                "signer": result.sealed.signer,
                "manifest_digest": result.sealed.manifest_digest,
                "invalid": list(result.invalid),
                "warnings": list(result.warnings),
            }
        )
        return
    totals = result.inclusion.totals
    click.echo(f"run        {result.run.run_id}")
    click.echo(f"trials     {totals.included} included, {totals.excluded} excluded, {totals.lost} lost")
    for name, value in grades.items():
        click.echo(f"{name:<17} {value}")
    click.echo(f"signed by  {result.sealed.signer or 'nobody'}")
    click.echo(f"folder     {result.run.path}")
    for line in _next_steps(result, key):
        click.echo(line)
    for sentence in result.warnings:
        click.echo(f"warning: {sentence}", err=True)
    for sentence in result.invalid:
        click.echo(f"INVALID: {sentence}", err=True)


def _next_steps(result: RunResult, key: Path | None) -> list[str]:
    """Commands that work as they stand: for a lab elsewhere, and for a run that another key signed."""
    from labaudit.store.lab_folder import LabFolder

    lab = LabFolder(result.run.path.parent.parent)
    steps = [f"report     labaudit site {lab.named(result.run.run_id)} --out site"]
    check = f"check      labaudit verify {shlex.quote(str(result.run.path))}"
    if result.sealed.signer is None:
        return [*steps, f"{check} --integrity-only"]
    # Whom to trust is the reader's choice; this line is for the lab itself.
    public = lab.public_key if key is None else key.with_suffix(".pub")
    shown = shlex.quote(str(public)) if public.is_file() else f"PUBLIC_KEY_OF_{result.sealed.signer}"
    return [*steps, f"{check} --key {shown}"]
