"""Differences that lie on a lattice to exact bootstrap percentiles and exact sign-flip p-values.

Binary outcomes, counts and scores with few decimals make every task difference a whole multiple of one step. Then the
bootstrap distribution of the mean is the n-fold convolution of the observed distribution (a power in Fourier space) and
the sign-flip distribution is a product of two-point distributions: both have exact answers, without a seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# A wider lattice costs more than drawing resamples does.
MAX_POINTS = 1 << 17
_DECIMALS = (1, 2, 10, 100, 1000)
# Fourier rounding: a distribution function this close below a probability has reached it.
_REACHED = 1e-12


@dataclass(frozen=True)
class Lattice:
    """Differences as whole multiples of `1 / per_one`."""

    multiples: NDArray[np.int64]
    per_one: int

    @property
    def n(self) -> int:
        """Number of tasks."""
        return len(self.multiples)


def find_lattice(differences: Sequence[float] | NDArray[np.float64], replicates: int) -> Lattice | None:
    """The coarsest lattice that holds all differences and stays small, else None.

    `replicates` is the least common multiple of the replicate counts: task means of whole numbers are multiples of its
    inverse.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.size == 0 or not np.all(np.isfinite(values)):
        return None
    for decimals in _DECIMALS:
        per_one = replicates * decimals
        scaled = values * per_one
        if not np.all(np.abs(scaled) < 2**40):
            return None
        rounded = np.rint(scaled)
        # Measured against the differences themselves: by an absolute hair, costs of 1e-10 would all be zero.
        largest = min(1.0, float(np.max(np.abs(scaled))))
        if np.all(np.abs(scaled - rounded) <= 1e-9 * np.maximum(largest, np.abs(scaled))):
            multiples = rounded.astype(np.int64)
            width = int(multiples.max() - multiples.min()) + 1
            reach = int(np.abs(multiples).sum())
            fits = width * values.size <= MAX_POINTS and 2 * reach + 1 <= MAX_POINTS
            return Lattice(multiples, per_one) if fits else None
    return None


def percentile_interval(lattice: Lattice, level: float) -> tuple[float, float]:
    """The percentile bootstrap interval of the mean as infinitely many resamples would give it."""
    return _quantiles(lattice, ((1 - level) / 2, (1 + level) / 2))


def basic_interval(lattice: Lattice, level: float) -> tuple[float, float]:
    """The percentile interval reflected at the mean."""
    low, high = percentile_interval(lattice, level)
    mean = int(lattice.multiples.sum()) / (lattice.n * lattice.per_one)
    return 2 * mean - high, 2 * mean - low


def _quantiles(lattice: Lattice, probabilities: tuple[float, float]) -> tuple[float, float]:
    lowest = int(lattice.multiples.min())
    cumulative = np.cumsum(_bootstrap_masses(lattice))
    found = []
    for probability in probabilities:
        steps = int(np.searchsorted(cumulative, probability - _REACHED, side="left"))
        steps = min(steps, len(cumulative) - 1)
        found.append((steps + lowest * lattice.n) / (lattice.n * lattice.per_one))
    return found[0], found[1]


def _bootstrap_masses(lattice: Lattice) -> NDArray[np.float64]:
    """Probabilities of the resampled sum, from its lowest value upwards."""
    offsets = lattice.multiples - lattice.multiples.min()
    single = np.bincount(offsets) / lattice.n
    points = (len(single) - 1) * lattice.n + 1
    size = 1 << (points - 1).bit_length()
    masses = np.fft.irfft(np.fft.rfft(single, size) ** lattice.n, size)[:points]
    return np.maximum(masses, 0.0)


def sign_flip_p(multiples: NDArray[np.int64]) -> float:
    """Exact P(|sum of +-d_i| >= |sum of d_i|) with every sign equally likely.

    Equal sizes are taken together: m flips of size d are a binomial(m, 1/2) spread over steps of 2d. All terms are
    positive, so even tiny p-values keep their digits.
    """
    sizes, counts = np.unique(np.abs(multiples[multiples != 0]), return_counts=True)
    observed = abs(int(multiples.sum()))
    if len(sizes) == 0 or observed == 0:
        return 1.0
    # Work in steps of the common divisor; sums keep the parity of the total, so every second point is empty.
    divisor = int(np.gcd.reduce(sizes))
    masses = np.ones(1)
    for size, count in zip((sizes // divisor).tolist(), counts.tolist(), strict=True):
        masses = _spread(masses, size, count)
    total = int((sizes // divisor * counts).sum())
    sums = 2 * np.arange(len(masses)) - total
    extreme = masses[np.abs(sums) >= observed // divisor]
    return min(1.0, math.fsum(extreme))


def _spread(masses: NDArray[np.float64], size: int, count: int) -> NDArray[np.float64]:
    """`masses` convolved with a binomial(count, 1/2) whose successes are `size` points apart.

    A shorter operand is walked and the longer one added whole: elementwise sums come out the same on every processor,
    which a BLAS dot product does not promise.
    """
    binomial = _half_binomial(count)
    comb = np.zeros(size * count + 1)
    comb[::size] = binomial
    result = np.zeros(len(masses) + len(comb) - 1)
    if len(masses) <= len(binomial):
        for position, mass in enumerate(masses.tolist()):
            if mass:
                result[position : position + len(comb)] += mass * comb
    else:
        for successes, mass in enumerate(binomial.tolist()):
            place = successes * size
            result[place : place + len(masses)] += mass * masses
    return result


def _half_binomial(count: int) -> NDArray[np.float64]:
    """The binomial(count, 1/2) masses, in whole numbers up to the last division."""
    if count <= 1000:
        row = [1]
        for successes in range(1, count + 1):
            row.append(row[-1] * (count - successes + 1) // successes)
        scale = 1 << count
        return np.array([value / scale for value in row])
    from scipy.stats import binom

    return np.asarray(binom.pmf(np.arange(count + 1), count, 0.5), dtype=np.float64)
