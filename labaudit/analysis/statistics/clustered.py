"""Trial values grouped by task (or cluster) to a mean with naive and cluster-robust standard errors.

The naive error treats replicates of a task as independent and is shown only to make the difference visible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.statistics.resample_counts import power_of_two_near


@dataclass(frozen=True)
class MeanWithErrors:
    """A mean over trials and two standard errors; an error is None where the data cannot give one."""

    mean: float
    naive_se: float | None
    clustered_se: float | None
    n_values: int
    n_clusters: int


def clustered_mean(values: NDArray[np.float64], clusters: NDArray[np.int64]) -> MeanWithErrors | None:
    """Mean of all values; None when there is none. Every finite value counts once."""
    n = len(values)
    if n == 0:
        return None
    mean = math.fsum(values) / n
    deviations = values - mean
    labels, codes = np.unique(clusters, return_inverse=True)
    groups = len(labels)
    # bincount adds in input order, so callers sort by (task, replicate) first.
    sums = np.bincount(codes, weights=deviations, minlength=groups).astype(np.float64)
    # In powers of two near them: exact, and squares of tiny numbers do not vanish.
    unit, sums_unit = power_of_two_near(deviations), power_of_two_near(sums)
    squares, sum_squares = math.fsum((deviations / unit) ** 2), math.fsum((sums / sums_unit) ** 2)
    naive = math.sqrt(squares / (n - 1) / n) * unit if n > 1 else None
    robust = math.sqrt(groups / (groups - 1) * sum_squares) * sums_unit / n if groups > 1 else None
    return MeanWithErrors(mean, naive, robust, n, groups)
