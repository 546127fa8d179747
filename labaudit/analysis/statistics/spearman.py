"""Pairs of task-level differences to rank correlations with permutation p-values, many at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.statistics.resample_counts import Resampler

Vector = NDArray[np.float64]
MAX_PERMUTATIONS = 4999


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's rho and the permutation p of no association."""

    rho: float
    p: float
    n: int


def double_ranks(values: Vector) -> Vector:
    """Twice the mid-ranks: whole numbers, so that sums over permutations are exact."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    starts = ends - counts
    return (starts + ends + 1).astype(np.float64)[inverse]


def spearman_many(pairs: Sequence[tuple[Vector, Vector]], resampler: Resampler) -> list[RankCorrelation | None]:
    """Per (x, y) pair rho and p; None where one side does not vary. Pairs of one size share their permutations."""
    results: list[RankCorrelation | None] = [None] * len(pairs)
    by_size: dict[int, list[int]] = {}
    for position, (x, y) in enumerate(pairs):
        if len(x) > 2 and x.min() < x.max() and y.min() < y.max():
            by_size.setdefault(len(x), []).append(position)
    drawn = Resampler(resampler.seed, min(resampler.resamples, MAX_PERMUTATIONS))
    for n, positions in by_size.items():
        centred = [tuple(_centred(double_ranks(side)) for side in pairs[i]) for i in positions]
        observed = [math.fsum(x * y) for x, y in centred]
        at_least = [0] * len(positions)
        for orders in drawn.permutations(n):
            for k, (x, y) in enumerate(centred):
                sums = y[orders] @ x
                at_least[k] += int(np.count_nonzero(np.abs(sums) >= abs(observed[k])))
        for k, position in enumerate(positions):
            x, y = centred[k]
            rho = observed[k] / math.sqrt(math.fsum(x * x) * math.fsum(y * y))
            results[position] = RankCorrelation(rho, (1 + at_least[k]) / (drawn.resamples + 1), n)
    return results


def _centred(ranks: Vector) -> Vector:
    # Twice mid-ranks sum to n(n+1), so their mean n+1 is a whole number too.
    return ranks - (len(ranks) + 1)
