"""Differences off a lattice to sign-flip p-values: every assignment for few units, seeded ones for many."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.statistics.resample_counts import Resampler, whole_columns

Vector = NDArray[np.float64]
# 2^16 assignments are fewer cells than ten thousand draws over a hundred units.
ENUMERATE_UP_TO = 16
_COLUMNS_AT_ONCE = 64


def sign_flip_many(samples: Sequence[Vector], resampler: Resampler) -> list[tuple[float, str]]:
    """Per sample P(|sum of +-s_i| >= |sum of s_i|) and how it was found: `sign_flip_exact` or `..._monte_carlo`.

    Samples with equally many units share their signs.
    """
    results: dict[int, tuple[float, str]] = {}
    by_size: dict[int, list[int]] = {}
    for position, sums in enumerate(samples):
        if len(sums) <= ENUMERATE_UP_TO or not np.any(sums):
            results[position] = (_enumerated_p(sums), "sign_flip_exact")
        else:
            by_size.setdefault(len(sums), []).append(position)
    for positions in by_size.values():
        for start in range(0, len(positions), _COLUMNS_AT_ONCE):
            chunk = positions[start : start + _COLUMNS_AT_ONCE]
            for position, p in zip(chunk, _drawn_p([samples[i] for i in chunk], resampler), strict=True):
                results[position] = (p, "sign_flip_monte_carlo")
    return [results[position] for position in range(len(samples))]


def sign_flip_p(sums: Vector, resampler: Resampler) -> tuple[float, str]:
    """The same for one sample."""
    return sign_flip_many([sums], resampler)[0]


def _enumerated_p(sums: Vector) -> float:
    column, _ = whole_columns(sums, max(1, len(sums)))
    observed = abs(float(column.sum()))
    if observed == 0.0:
        return 1.0
    flipped = np.zeros(1)
    for value in column.tolist():
        flipped = np.concatenate([flipped - value, flipped + value])
    return float(np.count_nonzero(np.abs(flipped) >= observed)) / len(flipped)


def _drawn_p(samples: list[Vector], resampler: Resampler) -> list[float]:
    n = len(samples[0])
    columns = np.column_stack([whole_columns(sums, n)[0] for sums in samples])
    observed = np.abs(columns.sum(axis=0))
    at_least = np.zeros(len(samples), dtype=np.int64)
    for signs in resampler.signs(n):
        at_least += np.count_nonzero(np.abs(signs @ columns) >= observed, axis=0)
    return [(1 + int(count)) / (resampler.resamples + 1) for count in at_least]


def all_equal_p(sums: Vector) -> float:
    """The exact sign-flip p when all sums are the same number: only the two unanimous assignments are as extreme."""
    return 1.0 if not np.any(sums) else math.ldexp(2.0, -min(len(sums), 1000))
