"""Two arms on different tasks to unpaired estimates: Newcombe for proportions, Welch and bootstrap for means.

These stand in when task sets do not match. They are labelled so wherever they appear, because the tasks themselves
may make the difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.statistics.bootstrap import ROUNDING
from labaudit.analysis.statistics.normal import t_two_sided, t_two_sided_p
from labaudit.analysis.statistics.paired_proportions import wilson_interval
from labaudit.analysis.statistics.resample_counts import Resampler, whole_columns

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


def welch(variant: Vector, baseline: Vector, level: float = 0.95) -> Welch:
    """Difference of means of task means; no interval when neither arm has a spread."""
    difference = _mean(variant) - _mean(baseline)
    parts = [_variance_of_mean(variant), _variance_of_mean(baseline)]
    total = parts[0] + parts[1]
    if total == 0.0 or min(len(variant), len(baseline)) < 2:
        return Welch(difference, 0.0, None, None, None, None)
    error = math.sqrt(total)
    shares = parts[0] / total, parts[1] / total
    df = 1.0 / (shares[0] ** 2 / (len(variant) - 1) + shares[1] ** 2 / (len(baseline) - 1))
    half = t_two_sided(level, df) * error
    return Welch(difference, error, df, difference - half, difference + half, t_two_sided_p(difference / error, df))


def independent_percentile(
    variant: Vector, baseline: Vector, resampler: Resampler, level: float = 0.95
) -> tuple[float, float]:
    """The percentile bootstrap that resamples the tasks of each arm on their own."""
    shifts = _resampled_means(variant, resampler) - _resampled_means(baseline, _other_stream(resampler))
    ordered = np.sort(shifts)
    low = ordered[max(0, math.floor((len(ordered) + 1) * (1 - level) / 2) - 1)]
    high = ordered[min(len(ordered) - 1, math.ceil((len(ordered) + 1) * (1 + level) / 2) - 1)]
    return float(low), float(high)


def _resampled_means(values: Vector, resampler: Resampler) -> Vector:
    mean = _mean(values)
    column, unit = whole_columns(values - mean, len(values))
    sums = np.concatenate([counts @ column for counts in resampler.counts(len(values))])
    return mean + sums * unit / len(values)


def _other_stream(resampler: Resampler) -> Resampler:
    # Equal arm sizes would otherwise draw the same resamples and pair what is not paired.
    return Resampler(resampler.seed + 1, resampler.resamples)


def _mean(values: Vector) -> float:
    return math.fsum(values) / len(values)


def _variance_of_mean(values: Vector) -> float:
    if len(values) < 2:
        return 0.0
    deviations = values - _mean(values)
    if float(np.max(np.abs(deviations))) <= ROUNDING * float(np.max(np.abs(values))):
        return 0.0
    return math.fsum(deviations * deviations) / (len(values) - 1) / len(values)
