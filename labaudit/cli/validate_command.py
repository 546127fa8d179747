"""`labaudit validate`: an experiment resolved, and nothing run."""

from __future__ import annotations

from pathlib import Path

import click

from labaudit.cli.options import json_option, print_json


@click.command(epilog="Example: labaudit validate experiment.yaml --json")
@click.argument("experiment", type=click.Path(path_type=Path))
@click.option("--engine", type=click.Choice(["auto", "docker", "bubblewrap", "process"]), help="Over the file's own.")
@json_option
def validate(experiment: Path, engine: str | None, as_json: bool) -> None:
    """Resolve an experiment without running it; errors carry file and line."""
    from labaudit.pipeline.run import resolve_experiment

    resolution, opened, _ = resolve_experiment(experiment, engine)
    opened.close()
    resolved = resolution.resolved
    if as_json:
        print_json({"digest": str(resolution.digest), "resolved_experiment": resolved.to_json()})
        return
    variants = ", ".join(variant.id for variant in resolved.variants)
    click.echo(f"experiment  {resolved.experiment.id}: {resolved.experiment.name}")
    click.echo(f"digest      {resolution.digest}")
    dataset = resolved.dataset
    click.echo(f"tasks       {dataset.count} from {dataset.path} (sha256 {dataset.sha256[:16]}…)")
    click.echo(f"variants    {variants}")
    click.echo(f"trials      {resolved.schedule.trials}")
    click.echo(f"engine      {resolved.runtime.engine.resolved} ({resolved.runtime.engine.reason})")
    click.echo(f"image       {resolved.runtime.image.id or 'none'}")
    click.echo(f"network     {resolved.runtime.network.mode}")
    click.echo(f"primary     {', '.join(resolved.analysis_plan.primary)}")
    click.echo(f"defaults    {len(resolved.defaults)} filled in:")
    for item in resolved.defaults:
        click.echo(f"  {item.path} = {item.value!r}: {item.reason}")
