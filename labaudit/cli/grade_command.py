"""`labaudit grade`: grades computed again from stored evidence."""

from __future__ import annotations

from pathlib import Path

import click

from labaudit.cli.options import json_option, lab_option, print_json
from labaudit.cli.run_command import GRADES


@click.command(epilog="Example: labaudit grade latest --out regraded")
@click.argument("run")
@click.option("--out", type=click.Path(path_type=Path), help="Write the recomputed grades here.")
@lab_option
@json_option
@click.pass_context
def grade(ctx: click.Context, /, run: str, out: Path | None, lab_dir: str | None, as_json: bool) -> None:
    """Recompute all grades from evidence and compare; the run itself is never changed.

    Ends with 1 when a recorded grade is not what the evidence gives.
    """
    from labaudit.core.strict_json import parse_object
    from labaudit.pipeline.regrade import regrade
    from labaudit.store import atomic
    from labaudit.store.lab_folder import LabFolder

    folder = LabFolder.locate(lab_dir).find_run(run)
    run_id = folder.run_id
    if folder.manifest.is_file():
        run_id = str(parse_object(atomic.read_bytes(folder.manifest), where=str(folder.manifest))["run_id"])
    found = regrade(folder, run_id, out)
    if as_json:
        print_json({"grades": found.run.to_json(), "trials": found.trials, "differing": list(found.differing)})
    else:
        for name in GRADES:
            one = getattr(found.run, name)
            click.echo(f"{name:<17} {one.value}")
            for cap in one.caps:
                click.echo(f"  {cap.rule} to {cap.to}: {cap.sentence} [{cap.evidence}]")
        for path in found.differing:
            click.echo(f"DIFFERS  {path}", err=True)
        if not found.differing:
            click.echo(f"{found.trials} trials: every recorded grade is what the evidence gives")
    ctx.exit(1 if found.differing else 0)
