"""Missing trials to what they could have changed: Manski bounds, and whether the arms lose trials unequally."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[np.float64]
Mask = NDArray[np.bool_]


def manski_bounds(
    variant: Cells, variant_scheduled: Mask, baseline: Cells, baseline_scheduled: Mask, lowest: float, highest: float
) -> tuple[float, float]:
    """The effect if every scheduled trial without a value (NaN) had gone as badly, or as well, as the metric allows.

    Rows are tasks, columns replicates. A task's mean is over its scheduled cells; tasks without any are left out.
    """
    low = _mean_of_tasks(variant, variant_scheduled, lowest) - _mean_of_tasks(baseline, baseline_scheduled, highest)
    high = _mean_of_tasks(variant, variant_scheduled, highest) - _mean_of_tasks(baseline, baseline_scheduled, lowest)
    return low, high


def _mean_of_tasks(cells: Cells, scheduled: Mask, fill: float) -> float:
    filled = np.where(scheduled, np.where(np.isnan(cells), fill, cells), 0.0)
    counts = np.count_nonzero(scheduled, axis=1)
    means = filled.sum(axis=1)[counts > 0] / counts[counts > 0]
    return math.fsum(means) / len(means)


@lru_cache(maxsize=4096)
def differential_missingness_p(missing_v: int, total_v: int, missing_b: int, total_b: int) -> float | None:
    """Fisher's exact p that both arms lose trials at the same rate; None when an arm has no trial."""
    if total_v == 0 or total_b == 0:
        return None
    if missing_v + missing_b == 0:
        return 1.0
    from scipy.stats import fisher_exact

    table = np.array([[missing_v, total_v - missing_v], [missing_b, total_b - missing_b]])
    return min(1.0, float(fisher_exact(table).pvalue))
