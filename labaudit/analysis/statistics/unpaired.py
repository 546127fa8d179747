"""Two arms on different tasks to unpaired estimates: Newcombe for proportions, Welch and bootstrap for means.

These stand in when task sets do not match. They are labelled so wherever they appear, because the tasks themselves
may make the difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.statistics.bootstrap import ROUNDING, UnitSums
from labaudit.analysis.statistics.normal import t_two_sided, t_two_sided_p
from labaudit.analysis.statistics.paired_proportions import wilson_interval
from labaudit.analysis.statistics.resample_counts import Resampler, power_of_two_near, whole_columns

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Welch:
    """Welch's unequal-variances comparison of task means."""

    difference: float
    standard_error: float
    df: float | None
    low: float | None
    high: float | None
    p: float | None


def newcombe_independent(
    successes_v: int, n_v: int, successes_b: int, n_b: int, level: float = 0.95
) -> tuple[float, float]:
    """Newcombe's (1998) hybrid score interval for two independent proportions, variant minus baseline."""
    p_v, p_b = successes_v / n_v, successes_b / n_b
    low_v, high_v = wilson_interval(successes_v, n_v, level)
    low_b, high_b = wilson_interval(successes_b, n_b, level)
    difference = p_v - p_b
    low = difference - math.hypot(p_v - low_v, high_b - p_b)
    high = difference + math.hypot(high_v - p_v, p_b - low_b)
    return low, high


def fisher_p(successes_v: int, n_v: int, successes_b: int, n_b: int) -> float:
    """Fisher's exact two-sided p for two independent proportions."""
    from scipy.stats import fisher_exact

    table = np.array([[successes_v, n_v - successes_v], [successes_b, n_b - successes_b]])
    return min(1.0, float(fisher_exact(table).pvalue))


def welch(variant: UnitSums, baseline: UnitSums, level: float = 0.95) -> Welch:
    """Difference of means of task means; no interval when neither arm has a spread. Clusters count as one unit each."""
    difference = variant.effect - baseline.effect
    unit = power_of_two_near(np.concatenate([variant.sums, baseline.sums]))
    parts = [_variance_of_mean(variant, unit), _variance_of_mean(baseline, unit)]
    total = parts[0] + parts[1]
    if total == 0.0 or min(variant.n, baseline.n) < 2:
        return Welch(difference, 0.0, None, None, None, None)
    error = math.sqrt(total) * unit
    shares = parts[0] / total, parts[1] / total
    df = 1.0 / (shares[0] ** 2 / (variant.n - 1) + shares[1] ** 2 / (baseline.n - 1))
    half = t_two_sided(level, df) * error
    return Welch(difference, error, df, difference - half, difference + half, t_two_sided_p(difference / error, df))


def independent_percentile(
    variant: UnitSums, baseline: UnitSums, resampler: Resampler, level: float = 0.95
) -> tuple[float, float]:
    """The percentile bootstrap that resamples the units of each arm on their own."""
    shifts = _resampled_means(variant, resampler) - _resampled_means(baseline, _other_stream(resampler))
    ordered = np.sort(shifts)
    low = ordered[max(0, math.floor((len(ordered) + 1) * (1 - level) / 2) - 1)]
    high = ordered[min(len(ordered) - 1, math.ceil((len(ordered) + 1) * (1 + level) / 2) - 1)]
    return float(low), float(high)


def _resampled_means(arm: UnitSums, resampler: Resampler) -> Vector:
    column, unit = whole_columns(arm.sums - arm.effect * arm.tasks, arm.n)
    both = np.column_stack([column, arm.tasks])
    drawn = np.concatenate([counts @ both for counts in resampler.counts(arm.n)])
    shifts: Vector = arm.effect + drawn[:, 0] * unit / drawn[:, 1]
    return shifts


def _other_stream(resampler: Resampler) -> Resampler:
    # Equal arm sizes would otherwise draw the same resamples and pair what is not paired.
    return Resampler(resampler.seed + 1, resampler.resamples)


def _variance_of_mean(arm: UnitSums, unit: float) -> float:
    """In squares of `unit`, a power of two near the values, so that tiny ones do not vanish."""
    if arm.n < 2:
        return 0.0
    residuals = arm.sums - arm.effect * arm.tasks
    if float(np.max(np.abs(residuals))) <= ROUNDING * float(np.max(np.abs(arm.sums))):
        return 0.0
    squares, weight = math.fsum((residuals / unit) ** 2), math.fsum(arm.tasks)
    return squares / (arm.n - 1) / arm.n if weight == arm.n else squares * arm.n / (arm.n - 1) / weight**2
