"""Per-unit sums to bootstrap intervals and p-values, many metrics at a time.

A unit is a task, or a declared cluster of tasks. Each unit carries the sum of its task differences and the number of
its tasks; the effect is the mean over tasks, a ratio of sums. Replicates ride along inside the task means: they are no
units.

The default is the symmetric studentised bootstrap: |t*| is compared with itself, which cancels the skewness term of the
coverage error. The percentile interval is always computed beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.statistics.normal import normal_cdf, normal_quantile
from labaudit.analysis.statistics.resample_counts import Resampler, power_of_two_near, whole_columns

Vector = NDArray[np.float64]
_COLUMNS_AT_ONCE = 64
# A spread this small beside the numbers themselves is what arithmetic leaves of equal numbers.
ROUNDING = 1e-12


@dataclass(frozen=True)
class UnitSums:
    """One metric of one comparison, reduced to its resampling units."""

    sums: Vector
    tasks: Vector

    @classmethod
    def of_tasks(cls, differences: Vector) -> UnitSums:
        """Every task is its own unit."""
        return cls(np.asarray(differences, dtype=np.float64), np.ones(len(differences)))

    @classmethod
    def of_groups(cls, differences: Vector, groups: NDArray[np.int64] | None) -> UnitSums:
        """Every task is its own unit, or tasks of one group are one."""
        if groups is None:
            return cls.of_tasks(differences)
        _, codes = np.unique(groups, return_inverse=True)
        count = int(codes.max()) + 1 if len(codes) else 0
        return cls(
            np.bincount(codes, weights=differences, minlength=count).astype(np.float64),
            np.bincount(codes, minlength=count).astype(np.float64),
        )

    @property
    def n(self) -> int:
        """Number of units."""
        return len(self.sums)

    @property
    def effect(self) -> float:
        """The mean difference over tasks."""
        return math.fsum(self.sums) / math.fsum(self.tasks)

    @property
    def standard_error(self) -> float:
        """The (cluster-robust) standard error of the effect; 0 with a single unit, or with equal ones."""
        if self.n < 2:
            return 0.0
        residuals = self.sums - self.effect * self.tasks
        if float(np.max(np.abs(residuals))) <= ROUNDING * float(np.max(np.abs(self.sums))):
            return 0.0
        # In a power of two near the residuals: exact, and squares of tiny numbers do not vanish.
        unit = power_of_two_near(residuals)
        relative = residuals / unit
        squares = math.fsum(relative * relative)
        return math.sqrt(self.n / (self.n - 1) * squares) * unit / math.fsum(self.tasks)


@dataclass(frozen=True)
class Bootstrapped:
    """What the resamples of one metric say, before any choice between intervals."""

    effect: float
    standard_error: float
    sorted_effects: Vector
    sorted_abs_t: Vector
    acceleration: float

    @property
    def resamples(self) -> int:
        """How many there were."""
        return len(self.sorted_effects)

    def resolves(self, level: float) -> bool:
        """Whether at least one resample is expected beyond each end of an interval of this level."""
        return (self.resamples + 1) * (1 - level) / 2 >= 1.0 - 1e-9

    def symmetric_interval(self, level: float) -> tuple[float, float] | None:
        """effect -+ q * SE, or None when too many resamples have no spread to divide by."""
        rank = math.ceil((self.resamples + 1) * level)
        if rank > self.resamples:
            return None
        q = float(self.sorted_abs_t[rank - 1])
        if not math.isfinite(q):
            return None
        return self.effect - q * self.standard_error, self.effect + q * self.standard_error

    def percentile_interval(self, level: float) -> tuple[float, float]:
        """The plain percentile interval."""
        return self._quantile((1 - level) / 2), self._quantile((1 + level) / 2)

    def basic_interval(self, level: float) -> tuple[float, float]:
        """The percentile interval reflected at the effect."""
        low, high = self.percentile_interval(level)
        return 2 * self.effect - high, 2 * self.effect - low

    def bca_interval(self, level: float) -> tuple[float, float]:
        """Efron's bias-corrected and accelerated interval."""
        left = np.searchsorted(self.sorted_effects, self.effect, side="left")
        right = np.searchsorted(self.sorted_effects, self.effect, side="right")
        below = float(left + right) / (2 * self.resamples)
        bias = normal_quantile(min(max(below, 1 / (2 * self.resamples)), 1 - 1 / (2 * self.resamples)))
        return self._bca_end((1 - level) / 2, bias), self._bca_end((1 + level) / 2, bias)

    def p_value(self) -> float:
        """(1 + #{|t*| >= |t|}) / (B + 1) for the hypothesis of no effect."""
        if self.standard_error == 0.0:
            return 1.0
        observed = abs(self.effect) / self.standard_error
        # A hair below, so that a resample equal to the data in exact arithmetic counts as at least as extreme.
        at_least = self.resamples - int(np.searchsorted(self.sorted_abs_t, observed * (1 - 1e-9), side="left"))
        return (1 + at_least) / (self.resamples + 1)

    def _bca_end(self, probability: float, bias: float) -> float:
        shifted = bias + normal_quantile(probability)
        return self._quantile(normal_cdf(bias + shifted / (1 - self.acceleration * shifted)))

    def _quantile(self, probability: float) -> float:
        place = probability * (self.resamples + 1) - 1
        low = min(max(math.floor(place), 0), self.resamples - 1)
        high = min(low + 1, self.resamples - 1)
        share = min(max(place - low, 0.0), 1.0)
        first, second = float(self.sorted_effects[low]), float(self.sorted_effects[high])
        return first + share * (second - first)


def bootstrap_many(samples: Sequence[UnitSums], resampler: Resampler) -> list[Bootstrapped]:
    """One result per sample, in order; samples with the same number of units share their resamples."""
    results: dict[int, Bootstrapped] = {}
    by_size: dict[int, list[int]] = {}
    for position, sample in enumerate(samples):
        by_size.setdefault(sample.n, []).append(position)
    for positions in by_size.values():
        for start in range(0, len(positions), _COLUMNS_AT_ONCE):
            chunk = positions[start : start + _COLUMNS_AT_ONCE]
            found = _bootstrap_equal_sizes([samples[i] for i in chunk], resampler)
            results.update(zip(chunk, found, strict=True))
    return [results[position] for position in range(len(samples))]


def bootstrap_one(sample: UnitSums, resampler: Resampler) -> Bootstrapped:
    """The bootstrap of a single metric."""
    return bootstrap_many([sample], resampler)[0]


def _bootstrap_equal_sizes(samples: list[UnitSums], resampler: Resampler) -> list[Bootstrapped]:
    n, width = samples[0].n, len(samples)
    tasks = np.column_stack([sample.tasks for sample in samples])
    heaviest = n * int(tasks.max()) ** 2
    whole = [whole_columns(s.sums - s.effect * s.tasks, heaviest) for s in samples]
    residuals = np.column_stack([column for column, _ in whole])
    plain = bool(np.all(tasks == 1.0))
    columns = [residuals, residuals * residuals]
    if not plain:
        columns += [tasks, residuals * tasks, tasks * tasks]
    stacked = np.hstack(columns)
    shifts, abs_ts = [], []
    for counts in resampler.counts(n):
        parts = np.split(counts @ stacked, len(columns), axis=1)
        shift, abs_t = _studentise(parts, n, plain)
        shifts.append(shift)
        abs_ts.append(abs_t)
    shift_rows, t_rows = np.sort(np.vstack(shifts), axis=0), np.sort(np.vstack(abs_ts), axis=0)
    return [
        Bootstrapped(
            effect=samples[i].effect,
            standard_error=samples[i].standard_error,
            sorted_effects=samples[i].effect + shift_rows[:, i] * whole[i][1],
            sorted_abs_t=t_rows[:, i],
            acceleration=_acceleration(samples[i]),
        )
        for i in range(width)
    ]


def _studentise(parts: list[NDArray[np.float64]], n: int, plain: bool) -> tuple[Vector, Vector]:
    """Per resample: how far its effect lies from the data's, in whole units, and |t*|."""
    sums, squares = parts[0], parts[1]
    if plain:
        shift = sums / n
        spread = squares - shift * sums
        weight: Vector | float = float(n)
    else:
        tasks, cross, task_squares = parts[2:]
        shift = sums / tasks
        spread = squares - 2 * shift * cross + shift * shift * task_squares
        weight = tasks
    # Rounding may leave a crumb where a resample repeats one unit: that is a spread of zero.
    spread = np.where(spread <= 1e-12 * squares, 0.0, spread)
    error = np.sqrt(n / (n - 1) * spread) / weight if n > 1 else np.zeros_like(shift)
    with np.errstate(divide="ignore", invalid="ignore"):
        abs_t = np.abs(shift) / error
    return shift, np.where(shift == 0.0, 0.0, np.where(error == 0.0, np.inf, abs_t))


def _acceleration(sample: UnitSums) -> float:
    """Jackknife skewness over six, from the influence of each unit."""
    influence = sample.sums - sample.effect * sample.tasks
    largest = float(np.max(np.abs(influence))) if sample.n else 0.0
    if largest == 0.0:
        return 0.0
    # It has no unit; without one, cubes neither overflow nor vanish.
    relative = influence / largest
    return math.fsum(relative**3) / (6 * math.pow(math.fsum(relative * relative), 1.5))
