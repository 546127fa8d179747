"""Rows to columns: one NumPy array per fact, with a value or a cause of absence for every declared metric."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.trials.rows import TrialRow

# Codes of the causes; 0 means that the value is there. The last is not an absence: nothing was scheduled.
CAUSES = ("present", "missing", "error", "absent", "invalid", "nan")
PRESENT, MISSING, ERROR, ABSENT, INVALID, NAN = range(6)
UNSCHEDULED = 6
_CODES = {name: code for code, name in enumerate(CAUSES)}
STATUSES = ("included", "excluded", "lost")
# Beyond this the cubes that a skewness needs overflow a double; no measurement is that large.
LARGEST = 1e100


@dataclass(frozen=True)
class MetricColumn:
    """Values (NaN where there is none) and why there is none."""

    values: NDArray[np.float64]
    causes: NDArray[np.uint8]


@dataclass(frozen=True)
class TrialTable:
    """All scheduled trials of a run, in schedule order."""

    trial_ids: Sequence[str]
    index: NDArray[np.int64]
    variants: tuple[str, ...]
    variant: NDArray[np.int32]
    tasks: tuple[str, ...]
    task: NDArray[np.int32]
    repl: NDArray[np.int64]
    status: NDArray[np.uint8]
    attempts: NDArray[np.int64]
    metrics: Mapping[str, MetricColumn]

    def __len__(self) -> int:
        return len(self.index)


def table_of_rows(rows: Sequence[TrialRow], metric_types: Mapping[str, str]) -> TrialTable:
    """The table of the metrics in `metric_types` (name -> binary or continuous)."""
    variants = tuple(sorted({row.variant_id for row in rows}))
    tasks = tuple(sorted({row.task_id for row in rows}))
    variant_codes = {name: code for code, name in enumerate(variants)}
    task_codes = {name: code for code, name in enumerate(tasks)}
    return TrialTable(
        trial_ids=[row.trial_id for row in rows],
        index=np.array([row.index for row in rows], dtype=np.int64),
        variants=variants,
        variant=np.array([variant_codes[row.variant_id] for row in rows], dtype=np.int32),
        tasks=tasks,
        task=np.array([task_codes[row.task_id] for row in rows], dtype=np.int32),
        repl=np.array([row.repl_idx for row in rows], dtype=np.int64),
        status=np.array([STATUSES.index(row.status) for row in rows], dtype=np.uint8),
        attempts=np.array([row.attempts for row in rows], dtype=np.int64),
        metrics={name: _column(rows, name, kind == "binary") for name, kind in metric_types.items()},
    )


def _column(rows: Sequence[TrialRow], name: str, binary: bool) -> MetricColumn:
    values = np.full(len(rows), np.nan)
    causes = np.zeros(len(rows), dtype=np.uint8)
    for position, row in enumerate(rows):
        value, cause = usable_value(row, name, binary)
        causes[position] = cause
        if cause == PRESENT:
            values[position] = value
    return MetricColumn(values, causes)


def usable_value(row: TrialRow, name: str, binary: bool) -> tuple[float, int]:
    """The number that counts, or NaN and the code of the cause why none does."""
    if row.status != "included":
        # An excluded trial's result is declared not valid; a lost trial left none.
        return math.nan, INVALID if row.status == "excluded" else ABSENT
    cause = row.missing.get(name)
    if cause is not None:
        return math.nan, _CODES.get(cause, INVALID)
    if name not in row.metrics:
        return math.nan, _absence(row)
    value = row.metrics[name]
    if value is None:
        return math.nan, MISSING
    if isinstance(value, bool):
        return (float(value), PRESENT) if binary else (math.nan, INVALID)
    if not isinstance(value, (int, float)):
        return math.nan, INVALID
    number = float(value)
    if math.isnan(number):
        return math.nan, NAN
    if abs(number) > LARGEST or (binary and number not in (0.0, 1.0)):
        return math.nan, INVALID
    return number, PRESENT


def _absence(row: TrialRow) -> int:
    if row.problem is not None:
        return INVALID
    if row.outcome == "error":
        return ERROR
    return MISSING if row.outcome == "missing" else ABSENT
