"""Compared cells to one difference per task, on the scale of the effect, and to the units that are resampled."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.effects.missingness import ComparedCells
from labaudit.analysis.statistics.bootstrap import ROUNDING, UnitSums

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class TaskDifferences:
    """Per compared task: both means, how many values they rest on, and the difference variant minus baseline."""

    tasks: NDArray[np.int64]
    variant_mean: Vector
    baseline_mean: Vector
    variant_n: NDArray[np.int64]
    baseline_n: NDArray[np.int64]
    difference: Vector
    value_range: float

    @property
    def n(self) -> int:
        """Number of tasks."""
        return len(self.tasks)

    @property
    def replicates_lcm(self) -> int:
        """Task means of whole numbers are multiples of the inverse of this."""
        counts = np.unique(np.concatenate([self.variant_n, self.baseline_n]))
        return math.lcm(*(int(count) for count in counts if count > 0)) if len(counts) else 1

    @property
    def single_replicate(self) -> bool:
        """Every mean is one value."""
        return bool(self.n and self.variant_n.max() == 1 and self.baseline_n.max() == 1)


class NoLogarithm(ValueError):
    """A task mean is zero or negative, so that a ratio has no logarithm; carries how many tasks."""

    def __init__(self, tasks: int) -> None:
        super().__init__(f"{tasks} tasks have a mean that is not positive")
        self.tasks = tasks


def task_differences(cells: ComparedCells, *, log: bool) -> TaskDifferences:
    """D_i per task; with `log` the logarithm of the ratio of the task means."""
    variant_mean, variant_n = _means(cells.variant)
    baseline_mean, baseline_n = _means(cells.baseline)
    first, second = variant_mean, baseline_mean
    if log:
        bad = int(np.count_nonzero((variant_mean <= 0) | (baseline_mean <= 0)))
        if bad:
            raise NoLogarithm(bad)
        first, second = np.log(variant_mean), np.log(baseline_mean)
    return TaskDifferences(
        tasks=cells.tasks,
        variant_mean=variant_mean,
        baseline_mean=baseline_mean,
        variant_n=variant_n,
        baseline_n=baseline_n,
        difference=_without_rounding(first - second, first, second),
        value_range=_range(np.concatenate([first, second])),
    )


def resampling_units(differences: TaskDifferences, clusters: NDArray[np.int64] | None) -> UnitSums:
    """Tasks as they are, or summed by cluster; `clusters` has a code for every task of the run."""
    return UnitSums.of_groups(differences.difference, None if clusters is None else clusters[differences.tasks])


def _means(cells: NDArray[np.float64]) -> tuple[Vector, NDArray[np.int64]]:
    valid = ~np.isnan(cells)
    counts = np.count_nonzero(valid, axis=1)
    sums = np.where(valid, cells, 0.0).sum(axis=1)
    return sums / np.maximum(counts, 1), counts.astype(np.int64)


def _without_rounding(difference: Vector, first: Vector, second: Vector) -> Vector:
    """Differences that are equal but for the arithmetic of the means are made equal: that spread would be none."""
    if not difference.size:
        return difference
    size = max(float(np.max(np.abs(first))), float(np.max(np.abs(second))))
    lowest, highest = float(difference.min()), float(difference.max())
    if 0.0 < highest - lowest <= ROUNDING * size:
        return np.full_like(difference, (lowest + highest) / 2)
    return difference


def _range(values: Vector) -> float:
    return float(values.max() - values.min()) if values.size else 0.0
