"""The analysis beside scipy, pandas and plain reading, in the same run; CPU seconds, so that neighbours matter less.

    python benchmarks/bench_analysis.py [--trials N] [--coverage]

`--coverage` prints the simulated coverage table of docs/benchmarks/analysis.md instead (2,000 data sets per cell).
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.stats

from labaudit.analysis.coverage import coverage_table
from labaudit.analysis.effects.differences import task_differences
from labaudit.analysis.effects.estimate import estimate_all, prepare
from labaudit.analysis.effects.families import Compared
from labaudit.analysis.effects.missingness import ComparedCells
from labaudit.analysis.effects.plan import AnalysisSettings, MetricPlan
from labaudit.analysis.paired_rows import paired_lines, paired_parquet
from labaudit.analysis.tables import FEWEST_SHOWN
from labaudit.analysis.trials.parquet import read_trials_parquet, trials_parquet
from labaudit.analysis.trials.rows import TrialRow, read_rows
from labaudit.analysis.trials.table import MetricColumn, TrialTable, table_of_rows
from labaudit.store.run_folder import RunFolder

SEED = 20261118
Row = tuple[str, str, str]


def cpu(work: Callable[[], object], times: int = 3) -> float:
    """Least CPU seconds of a few runs."""
    spans = []
    for _ in range(times):
        started = time.process_time()
        work()
        spans.append(time.process_time() - started)
    return min(spans)


def plan(metrics: int, variants: int, replications: int, resamples: int = 10_000) -> AnalysisSettings:
    listed = tuple(
        MetricPlan(f"m{n:02}", "binary", "higher", "secondary" if n else "primary", "risk_diff", "evaluator:x", None)
        if n % 2 == 0
        else MetricPlan(f"m{n:02}", "continuous", "lower", "secondary", "mean_diff", "harness", None)
        for n in range(metrics)
    )
    return AnalysisSettings(
        "v00", tuple(f"v{n:02}" for n in range(1, variants)), listed, "paired_drop", "auto", 0.95, resamples,
        {"primary": "holm", "secondary": "bh"}, "tasks_like_these", None, SEED, replications,
    )  # fmt: skip


def against_scipy() -> Row:
    """Binary, one replicate, n = 500: Tango, exact McNemar and the exact percentile bootstrap."""
    stream = np.random.default_rng(SEED)
    baseline = (stream.random(500) < 0.6).astype(float)
    variant = np.where(stream.random(500) < 0.8, baseline, 1 - baseline)
    settings = plan(1, 2, 1)

    def ours() -> None:
        cells = ComparedCells(
            variant[:, None], baseline[:, None], np.arange(500), np.zeros(500, dtype=bool), 0, 0, 0, 0
        )
        one = prepare(task_differences(cells, log=False), settings.metrics[0], settings, None)
        estimate_all([one], settings.resampler, 0.95)

    def theirs() -> None:
        scipy.stats.bootstrap(
            (variant, baseline), lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis), paired=True,
            vectorized=True, method="BCa", n_resamples=9999, rng=np.random.default_rng(1),
        )  # fmt: skip

    mine, other = cpu(ours, 20), cpu(theirs)
    return "interval, p and exact bootstrap, binary n=500", f"{1000 * mine:.2f} ms", f"{other / mine:.0f}x faster"


def made_table(metrics: int, variants: int, tasks: int, replicates: int) -> TrialTable:
    stream = np.random.default_rng(SEED)
    variant, task, repl = (
        part.reshape(-1) for part in np.meshgrid(range(variants), range(tasks), range(replicates), indexing="ij")
    )
    size = len(variant)
    columns = {
        f"m{n:02}": MetricColumn(
            stream.integers(0, 2, size).astype(float) if n % 2 == 0 else stream.lognormal(size=size),
            np.zeros(size, dtype=np.uint8),
        )
        for n in range(metrics)
    }
    return TrialTable(
        trial_ids=[f"trial-{n:06}" for n in range(size)],
        index=np.arange(size),
        variants=tuple(f"v{n:02}" for n in range(variants)),
        variant=variant.astype(np.int32),
        tasks=tuple(f"task-{n:05}" for n in range(tasks)),
        task=task.astype(np.int32),
        repl=repl.astype(np.int64),
        status=np.zeros(size, dtype=np.uint8),
        attempts=np.ones(size, dtype=np.int64),
        metrics=columns,
    )


def wide_run() -> Iterator[Row]:
    """50 metrics x 10 variants (and the baseline) x 500 tasks x 3 replicates, against a pandas groupby of the means."""
    table, settings = made_table(50, 11, 500, 3), plan(50, 11, 3)
    frame = pd.DataFrame({name: column.values for name, column in table.metrics.items()})
    frame["variant"], frame["task"] = table.variant, table.task

    def grouped() -> None:
        means = frame.groupby(["variant", "task"]).mean()
        (means - means.loc[0].reindex(means.index, level=1)).groupby(level=0).agg(["mean", "sem"])

    mine, other = cpu(lambda: Compared(table, settings), 1), cpu(grouped)
    beside = f"{mine / other:.0f}x a pandas groupby of means and errors"
    yield "500 comparisons: 50 metrics, 10 variants, 500 tasks x 3", f"{mine:.1f} s", beside
    compared = Compared(table, settings)
    lines = cpu(lambda: [len(block) for block in paired_lines(compared)], 1)
    parquet = cpu(lambda: paired_parquet(compared), 1)
    yield "their 750,000 paired_diffs lines", f"{lines:.1f} s", f"{parquet:.1f} s as Parquet"


def made_run(folder: Path, trials: int) -> RunFolder:
    """Trial folders with a record and metrics each; no other evidence."""
    run = RunFolder(folder)
    rows = []
    for number in range(trials):
        variant, task = f"v{number % 2:02}", number // 2
        name = f"{variant}.task-{task:06}.r0-{number:08x}"
        ids = {"run_id": "r", "trial_id": name, "variant_id": variant, "task_id": f"task-{task:06}", "repl_idx": 0}
        trial = f"{run.trials}/{name}"
        os.makedirs(trial)
        rows.append({"index": number, **ids, "status": "included", "rule": "completed", "reason": "",
                     "outcome": "success", "attempts": 1})  # fmt: skip
        metrics = {"m00": number % 3 % 2, "m01": number / 7}
        write(f"{trial}/metrics.json", {"schema_version": "metrics_v1", "ids": ids, "outcome": "success",
              "metrics": metrics, "sources": {}, "missing": {}, "self_reported": ["m01"]})  # fmt: skip
        write(f"{trial}/trial_record.json", {"schema_version": "trial_record_v1", "ids": ids, "index": number,
              "attempt": 1, "attempts": 1, "status": "completed", "outcome": "success", "evidence_origin": "local",
              "started_at": "2026-11-18T09:00:00.000000Z", "ended_at": "2026-11-18T09:00:01.000000Z",
              "image_digest": None, "files": [{"path": "metrics.json", "size": 200, "sha256": "0" * 64}]})  # fmt: skip
    write(str(run.inclusion), {"schema_version": "inclusion_v1", "run_id": "r", "rows": rows, "totals": {}})
    return run


def write(path: str, value: object) -> None:
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(value, stream, separators=(",", ":"))


def read_plainly(run: RunFolder, rows: list[TrialRow]) -> None:
    """The floor: open, read and parse the same two files of every trial."""
    for row in rows:
        for name in ("metrics.json", "trial_record.json"):
            with open(f"{run.trials}/{row.trial_id}/{name}", "rb") as stream:
                json.loads(stream.read())


def many_trials(trials: int) -> Iterator[Row]:
    types = {"m00": "binary", "m01": "continuous"}
    with tempfile.TemporaryDirectory() as folder:
        run = made_run(Path(folder), trials)
        rows = read_rows(run)
        from_files = cpu(lambda: table_of_rows(read_rows(run), types), 1)
        floor = cpu(lambda: read_plainly(run, rows), 1)
        yield f"{trials:,} trials from files", f"{from_files:.1f} s", f"{from_files / floor:.1f}x open and json.loads"
        table = table_of_rows(rows, types)
        path = Path(folder) / "trials.parquet"
        written = cpu(lambda: path.write_bytes(trials_parquet(rows, table)), 1)
        mine, other = cpu(lambda: read_trials_parquet(path)), cpu(lambda: pd.read_parquet(path))
        yield f"{trials:,} trials from Parquet", f"{mine:.2f} s", f"{mine / other:.2f}x pandas.read_parquet"
        yield "writing that Parquet with its row digests", f"{written:.1f} s", f"{written / other:.0f}x reading it"


def print_coverage(sets: int) -> None:
    """The table of docs/benchmarks/analysis.md."""
    print("| population | effect | tasks | replicates | coverage | percentile | warned | coverage unwarned | method |")
    print("|---|---|---|---|---|---|---|---|---|")
    sizes = [(tasks, replicates) for tasks in (20, 50, 200) for replicates in (1, 3, 5)]
    for row in coverage_table(sizes, plan(1, 2, 1, 1999), sets=sets):
        clean = f"{row.coverage_without_warning:.3f}" if row.sets - row.warned >= FEWEST_SHOWN else ""
        method = max(row.methods, key=lambda name: row.methods[name])
        print(
            f"| {row.population} | {row.effect} | {row.tasks} | {row.replicates} | {row.coverage:.3f} "
            f"| {row.percentile_coverage or 0:.3f} | {row.warned / row.sets:.0%} | {clean} | {method} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--sets", type=int, default=2000)
    options = parser.parse_args()
    if options.coverage:
        print_coverage(options.sets)
        return
    print("| what | CPU | beside |\n|---|---|---|")
    print("| {} | {} | {} than scipy's paired BCa bootstrap |".format(*against_scipy()), flush=True)
    for row in (*wide_run(), *many_trials(options.trials)):
        print("| {} | {} | {} |".format(*row), flush=True)


if __name__ == "__main__":
    main()
