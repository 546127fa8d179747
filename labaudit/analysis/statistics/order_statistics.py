"""Task differences to the median, its order-statistic interval and the sign test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.statistics.mcnemar import WHOLE_NUMBER_LIMIT, sign_test_p


@dataclass(frozen=True)
class MedianInterval:
    """An interval for the median, with the confidence that its ranks really give."""

    low: float
    high: float
    achieved_level: float
    widened: bool


def median(values: NDArray[np.float64]) -> float:
    """The middle value, or the mean of the middle two."""
    ordered = np.sort(values)
    n = len(ordered)
    return float(ordered[n // 2]) if n % 2 else (float(ordered[n // 2 - 1]) + float(ordered[n // 2])) / 2


def median_interval(values: NDArray[np.float64], level: float) -> MedianInterval:
    """The narrowest symmetric pair of order statistics with at least `level`, else the widest there is.

    Ties may put both ends on one value. Such an interval would claim perfect knowledge from coarse data, so it is
    widened to the next distinct values; the caller labels it.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ordered)
    depth, achieved = _depth(n, level)
    low, high = float(ordered[depth - 1]), float(ordered[n - depth])
    widened = low == high
    if widened:
        below, above = ordered[ordered < low], ordered[ordered > high]
        low = float(below[-1]) if below.size else low
        high = float(above[0]) if above.size else high
    return MedianInterval(low, high, achieved, widened)


def bootstrap_median_interval(values: NDArray[np.float64], level: float) -> tuple[float, float]:
    """The percentile bootstrap interval of the median, exactly: a resampled order statistic is a binomial event.

    P(m-th smallest of a resample <= k-th smallest value) = P(Binomial(n, k/n) >= m). With an even n the lower of the
    two middle values gives the lower end and the upper one the upper end, which encloses the interval of their mean.
    """
    from scipy.special import bdtrc

    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ordered)
    shares = np.arange(1, n + 1) / n
    ends = []
    for rank, probability in (((n + 1) // 2, (1 - level) / 2), (n // 2 + 1, (1 + level) / 2)):
        reached = np.asarray(bdtrc(rank - 1, n, shares), dtype=np.float64)
        reached[-1] = 1.0
        ends.append(float(ordered[int(np.searchsorted(reached, probability - 1e-12, side="left"))]))
    return ends[0], ends[1]


def sign_p(values: NDArray[np.float64]) -> float:
    """The exact sign test of a zero median."""
    return sign_test_p(int(np.count_nonzero(values > 0)), int(np.count_nonzero(values < 0)))


def _depth(n: int, level: float) -> tuple[int, float]:
    """The largest d with P(d-th smallest <= median <= d-th largest) >= level, at least 1, and that probability."""
    if n > WHOLE_NUMBER_LIMIT:
        from scipy.special import bdtr

        depth = max(1, math.floor(n / 2 - 4 * math.sqrt(n)))
        while depth + 1 <= (n + 1) // 2 and 1 - 2 * float(bdtr(depth, n, 0.5)) >= level:
            depth += 1
        return depth, 1 - 2 * float(bdtr(depth - 1, n, 0.5))
    scale, term, tail, depth = 1 << n, 1, 1, 1
    # `tail` counts the sign patterns with fewer than `depth` values on one side.
    for successes in range(1, (n + 1) // 2):
        term = term * (n - successes + 1) // successes
        if Fraction(scale - 2 * (tail + term), scale) < Fraction(level):
            break
        tail += term
        depth += 1
    return depth, float(Fraction(scale - 2 * tail, scale))
