"""The promised speeds, as ratios to scipy or as CPU seconds with room to spare."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from benchmarks import bench_analysis as bench
from labaudit.analysis.effects.families import Compared
from labaudit.analysis.trials.parquet import read_trials_parquet, trials_parquet
from labaudit.analysis.trials.rows import read_rows
from labaudit.analysis.trials.table import table_of_rows

pytestmark = pytest.mark.acceptance
TYPES = {"m00": "binary", "m01": "continuous"}


def test_a_binary_comparison_is_at_least_50_times_faster_than_scipys_bootstrap() -> None:
    _, _, said = bench.against_scipy()
    assert float(said.split("x")[0]) >= 50


def test_500_comparisons_take_less_than_10_seconds_of_cpu() -> None:
    table, plan = bench.made_table(50, 11, 500, 3), bench.plan(50, 11, 3)
    started = time.process_time()
    found = Compared(table, plan).comparisons
    assert time.process_time() - started < 10
    assert len(found) == 500


def test_trials_load_fast_from_files_and_from_parquet(tmp_path: Path) -> None:
    """The promise is 15 s of CPU from files and 1 s from Parquet for 100,000 trials; a fifth of them is tried here."""
    run = bench.made_run(tmp_path, 20_000)
    started = time.process_time()
    rows = read_rows(run)
    table = table_of_rows(rows, TYPES)
    assert time.process_time() - started < 15 / 5
    path = tmp_path / "trials.parquet"
    path.write_bytes(trials_parquet(rows, table))
    started = time.process_time()
    assert len(read_trials_parquet(path)) == 20_000
    assert time.process_time() - started < 1 / 5
