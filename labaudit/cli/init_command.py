"""`labaudit init`: a small working experiment to start from."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from labaudit.errors import BadInput


@click.command(epilog="Example: labaudit init my-experiment")
@click.argument("folder", type=click.Path(path_type=Path), default=Path(), metavar="[DIR]")
def init(folder: Path) -> None:
    """Write a small working experiment to start from; nothing that is there is written over."""
    from labaudit import resources
    from labaudit.store import atomic

    source = resources.experiment_dir("starter")
    files = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file())
    files = [path for path in files if "__pycache__" not in path.parts]
    taken = [str(folder / path) for path in files if (folder / path).exists()]
    if taken:
        raise BadInput(f"{taken[0]} is there already", hint="name another folder: labaudit init DIR")
    for path in files:
        atomic.write_bytes(folder / path, (source / path).read_bytes())
        click.echo(f"wrote {folder / path}")
    click.echo(f"next: labaudit run {shlex.quote(str(folder / 'experiment.yaml'))}")
