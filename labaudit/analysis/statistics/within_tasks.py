"""Replicates within tasks to the effect on exactly these tasks (the estimand `this_task_set`).

Here tasks are not a sample of anything: only the replicates are random. The variance of the effect is the sum of the
variances of the task means, which needs at least two replicates in every cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.statistics.bootstrap import ROUNDING
from labaudit.analysis.statistics.normal import t_two_sided, t_two_sided_p, z_two_sided
from labaudit.analysis.statistics.resample_counts import power_of_two_near

Cells = NDArray[np.float64]


@dataclass(frozen=True)
class WithinTasks:
    """Effect on the given tasks with its replicate-only error, or the code of the reason why there is no interval."""

    effect: float
    standard_error: float | None
    low: float | None
    high: float | None
    p: float | None
    method: str | None
    reason: str | None


def within_task_effect(
    variant: Cells,
    baseline: Cells,
    level: float,
    scale: float,
    *,
    log: bool = False,
    stood_in: NDArray[np.bool_] | None = None,
) -> WithinTasks:
    """Rows are tasks, columns replicates, NaN where there is no value; every task has a value in both arms.

    `scale` is the range of the metric: it bounds what replicates that always agreed could still have hidden. `log`
    takes the difference of the logarithms of the task means instead. `stood_in` marks tasks whose values a policy put
    in place of missing ones: they show no replicates at all.
    """
    unit = 1.0 if log else power_of_two_near(np.nan_to_num(np.concatenate([variant, baseline])))
    sides = [_task_moments(variant, log, unit), _task_moments(baseline, log, unit)]
    tasks = len(variant)
    effect = math.fsum(sides[0][0] - sides[1][0]) / tasks
    if int(min(sides[0][2].min(), sides[1][2].min())) < 2 or (stood_in is not None and bool(stood_in.any())):
        return WithinTasks(effect, None, None, None, None, None, "within_needs_replicates")
    parts = np.concatenate([sides[0][1], sides[1][1]]) / tasks**2
    total = math.fsum(parts)
    if total == 0.0:
        return _always_agreed(effect, int(min(sides[0][2].sum(), sides[1][2].sum())), level, scale)
    counts = np.concatenate([sides[0][2], sides[1][2]])
    shares = parts / total
    df = 1.0 / math.fsum(shares**2 / (counts - 1))
    error = math.sqrt(total) * unit
    half = t_two_sided(level, df) * error
    return WithinTasks(
        effect, error, effect - half, effect + half, t_two_sided_p(effect / error, df), "satterthwaite_t", None
    )


def _always_agreed(effect: float, trials: int, level: float, scale: float) -> WithinTasks:
    z = z_two_sided(level)
    half = scale * z * z / (trials + z * z)
    if half == 0.0:
        return WithinTasks(effect, None, None, None, None, None, "constant_metric")
    return WithinTasks(effect, 0.0, effect - half, effect + half, None, "zero_variance_bound", None)


def _task_moments(cells: Cells, log: bool, unit: float) -> tuple[Cells, Cells, Cells]:
    """Task means (or their logarithms), the variances of those in squares of `unit`, the numbers of valid replicates.

    Units are powers of two: dividing by them is exact, and the squares of tiny values do not vanish.
    """
    counts = np.count_nonzero(~np.isnan(cells), axis=1).astype(np.float64)
    filled = np.where(np.isnan(cells), 0.0, cells)
    means = filled.sum(axis=1) / counts
    deviations = np.where(np.isnan(cells), 0.0, cells - means[:, None])
    deviations[np.abs(deviations) <= ROUNDING * np.abs(means)[:, None]] = 0.0
    units = np.ldexp(1.0, np.frexp(means)[1]) if log else np.full(len(means), unit)
    variances = ((deviations / units[:, None]) ** 2).sum(axis=1) / np.maximum(counts - 1, 1) / counts
    if log:
        return np.log(means), variances / (means / units) ** 2, counts
    return means, variances, counts
