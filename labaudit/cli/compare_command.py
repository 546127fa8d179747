"""`labaudit compare`: two arms of a run side by side, with their pairs, exemplars, suspects and aligned diffs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labaudit.cli.options import json_option, lab_option, print_json
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder

if TYPE_CHECKING:
    from labaudit.analysis.pair_bundle import PairBundle


@click.command()
@click.argument("run_name", metavar="RUN")
@click.option("--baseline", metavar="B", help="The arm to compare with (default: the plan's baseline).")
@click.option("--variant", metavar="V", help="The arm to look at (may be left out if there is one).")
@click.option("--shown", type=click.IntRange(0), default=10, show_default=True, help="Rows per list on the terminal.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the bundle as files.")
@click.option("--processes", type=click.IntRange(1, 64), help="Processes that read trials; the result is the same.")
@lab_option
@json_option
def compare(
    run_name: str,
    baseline: str | None,
    variant: str | None,
    shown: int,
    out: Path | None,
    processes: int | None,
    lab_dir: str | None,
    as_json: bool,
) -> None:
    """Paired differences and the suspects bundle of one variant.

    Everything is computed from the trial files; the run is only read. Two arms that the signed plan does not compare
    get estimates without p-values. Suspects are associations in the evidence they name, never causes.

    \b
    Example: labaudit compare latest --baseline base --variant drop_10p
    Example: labaudit compare latest --variant drop_10p --json | jq '.suspects'
    Example: labaudit compare latest --variant drop_10p --out bundle
    """
    from labaudit.analysis.pair_bundle import read_pair
    from labaudit.analysis.recompute import refuse_occupied

    if out is not None:
        refuse_occupied(out)
    run = LabFolder.locate(lab_dir).find_run(run_name)
    bundle = read_pair(run, baseline, variant, processes=processes or os.cpu_count() or 1)
    if out is not None:
        _write(bundle, out)
    if as_json:
        print_json(bundle.as_json())
        return
    from labaudit.analysis.tables import bundle_lines

    for line in bundle_lines(bundle, shown):
        click.echo(line)


def _write(bundle: PairBundle, out: Path) -> None:
    document = bundle.as_json()
    atomic.write_bytes(out / "paired_diffs.jsonl", bundle.pairs)
    atomic.write_bytes(out / "diffs.jsonl", b"".join(line + b"\n" for line in bundle.diffs))
    for name in ("exemplars", "suspects"):
        atomic.write_json(out / f"{name}.json", document[name])
    head = {key: document[key] for key in ("run_id", "baseline", "variant", "planned", "comparisons")}
    atomic.write_json(out / "comparisons.json", head)
