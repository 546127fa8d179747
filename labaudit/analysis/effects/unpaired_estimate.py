"""Arms on different tasks to a labelled unpaired estimate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.effects.estimate import Estimate, IntervalFound, zero_variance_interval
from labaudit.analysis.effects.pairing import ArmGrid
from labaudit.analysis.effects.plan import AnalysisSettings, MetricPlan
from labaudit.analysis.statistics import unpaired

Vector = NDArray[np.float64]


def unpaired_estimate(
    variant: ArmGrid, baseline: ArmGrid, metric: MetricPlan, settings: AnalysisSettings
) -> Estimate | None:
    """Newcombe with Fisher for single binary values, else Welch on task means; None when an arm has no value."""
    fill = metric.failure_value if settings.missingness == "treat_as_failure" else None
    sides = [_task_means(arm, fill) for arm in (variant, baseline)]
    (means_v, counts_v), (means_b, counts_b) = sides
    if not len(means_v) or not len(means_b):
        return None
    if metric.effect == "log_ratio":
        means_v, means_b = np.log(means_v), np.log(means_b)
    percentile = _percentile(means_v, means_b, settings)
    if metric.type == "binary" and int(max(counts_v.max(), counts_b.max())) == 1:
        wins_v, wins_b = int(means_v.sum()), int(means_b.sum())
        sizes = wins_v, len(means_v), wins_b, len(means_b)
        low, high = unpaired.newcombe_independent(*sizes, settings.level)
        return Estimate(
            value=wins_v / len(means_v) - wins_b / len(means_b),
            standard_error=None,
            interval=IntervalFound("newcombe_independent", low, high),
            percentile=percentile,
            p=unpaired.fisher_p(*sizes),
            p_method="fisher_exact",
        )
    return _welch_estimate(means_v, means_b, percentile, metric, settings)


def _welch_estimate(
    means_v: Vector, means_b: Vector, percentile: IntervalFound, metric: MetricPlan, settings: AnalysisSettings
) -> Estimate:
    found = unpaired.welch(means_v, means_b, settings.level)
    interval, notes = IntervalFound("welch_t", found.low, found.high), tuple[str, ...]()
    if found.low is None:
        if min(len(means_v), len(means_b)) < 2:
            interval = IntervalFound("welch_t", None, None, reason="one_unit")
        else:
            everything = np.concatenate([means_v, means_b])
            scale = 1.0 if metric.type == "binary" else float(everything.max() - everything.min())
            smaller = min(len(means_v), len(means_b))
            interval, notes = zero_variance_interval(found.difference, smaller, scale, settings.level)
    return Estimate(found.difference, found.standard_error or None, interval, percentile, found.p, "welch_t", notes)


def _percentile(means_v: Vector, means_b: Vector, settings: AnalysisSettings) -> IntervalFound:
    low, high = unpaired.independent_percentile(means_v, means_b, settings.resampler, settings.level)
    if low == high:
        return IntervalFound("percentile_independent", None, None, reason="zero_variance")
    return IntervalFound("percentile_independent", low, high)


def _task_means(arm: ArmGrid, fill: float | None) -> tuple[Vector, NDArray[np.int64]]:
    usable = arm.present if fill is None else arm.scheduled
    filled = np.where(arm.present, arm.values, 0.0 if fill is None else fill)
    counts = np.count_nonzero(usable, axis=1)
    sums = np.where(usable, filled, 0.0).sum(axis=1)
    keep = counts > 0
    return sums[keep] / counts[keep], counts[keep].astype(np.int64)


def unpaired_has_logarithm(variant: ArmGrid, baseline: ArmGrid) -> int:
    """How many task means of either arm are not positive."""
    return sum(int(np.count_nonzero(_task_means(arm, None)[0] <= 0)) for arm in (variant, baseline))

