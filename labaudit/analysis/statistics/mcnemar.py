"""Discordant pairs to McNemar p-values, as exact binomial sums."""

from __future__ import annotations

import math
from fractions import Fraction

# Below this many discordant pairs the binomial sum is done in whole numbers, so every machine prints the same digits.
WHOLE_NUMBER_LIMIT = 2000


def exact_p(gained: int, lost: int) -> float:
    """The exact conditional test: two-sided binomial p of the discordant pairs at one half."""
    if gained + lost == 0:
        return 1.0
    return min(1.0, 2.0 * _lower_tail(min(gained, lost), gained + lost))


def mid_p(gained: int, lost: int) -> float:
    """The mid-p test: the exact p minus the probability of what was observed."""
    n = gained + lost
    if n == 0:
        return 1.0
    point = _point(min(gained, lost), n)
    if gained == lost:
        return 1.0 - 0.5 * point
    return min(1.0, 2.0 * _lower_tail(min(gained, lost), n) - point)


def sign_test_p(positive: int, negative: int) -> float:
    """The sign test of a zero median: zeros carry no sign and are left out, so it is the same binomial sum."""
    return exact_p(positive, negative)


def _lower_tail(k: int, n: int) -> float:
    """P(X <= k) for X binomial(n, 1/2)."""
    if n > WHOLE_NUMBER_LIMIT:
        from scipy.special import bdtr

        return float(bdtr(k, n, 0.5))
    term = total = 1
    for i in range(1, k + 1):
        term = term * (n - i + 1) // i
        total += term
    return float(Fraction(total, 1 << n))


def _point(k: int, n: int) -> float:
    if n > WHOLE_NUMBER_LIMIT:
        log_point = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2)
        return math.exp(log_point)
    return float(Fraction(math.comb(n, k), 1 << n))
