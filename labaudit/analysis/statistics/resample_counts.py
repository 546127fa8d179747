"""A seed and a number of units to bootstrap resamples and sign flips, as count and sign matrices.

Two decisions keep a recomputation elsewhere equal to the last bit. The raw stream of PCG64 is used (NumPy promises it
for ever, unlike the methods built on it), and the matrices hold small whole numbers, so that products with whole-number
columns (see `whole_columns`) are exact in doubles whatever the order of summation, the BLAS or the processor.

A matrix depends on (seed, number of units) alone; all metrics and variants with the same number of units share it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

_BLOCK_CELLS = 4_000_000
_BOOTSTRAP_STREAM, _SIGN_STREAM, _PERMUTATION_STREAM = 1, 2, 3


@dataclass(frozen=True)
class Resampler:
    """Where all randomness of an analysis comes from."""

    seed: int
    resamples: int

    def counts(self, n: int) -> Iterator[Matrix]:
        """How often each of n units is drawn, one row per resample, in blocks."""
        bits = self._bits(_BOOTSTRAP_STREAM, n)
        for rows in self._block_rows(n):
            drawn = _bounded(bits, rows * n, n)
            cells = drawn + np.repeat(np.arange(rows, dtype=np.int64) * n, n)
            yield np.bincount(cells, minlength=rows * n).reshape(rows, n).astype(np.float64)

    def signs(self, n: int) -> Iterator[Matrix]:
        """Rows of +1 and -1, in blocks."""
        bits = self._bits(_SIGN_STREAM, n)
        for rows in self._block_rows(n):
            words = bits.random_raw(math.ceil(rows * n / 64))
            flips = np.unpackbits(words.astype("<u8").view(np.uint8), count=rows * n)
            yield (flips.astype(np.float64) * 2.0 - 1.0).reshape(rows, n)

    def permutations(self, n: int) -> Iterator[NDArray[np.int64]]:
        """Rows of orderings of 0..n-1, in blocks; ties of the 64-bit sort keys do not happen in practice."""
        bits = self._bits(_PERMUTATION_STREAM, n)
        for rows in self._block_rows(n):
            keys = bits.random_raw(rows * n).reshape(rows, n)
            yield np.argsort(keys, axis=1, kind="stable")

    def _bits(self, stream: int, n: int) -> np.random.PCG64:
        return np.random.PCG64(np.random.SeedSequence([abs(self.seed), stream, n]))

    def _block_rows(self, n: int) -> Iterator[int]:
        size = max(1, min(self.resamples, _BLOCK_CELLS // max(1, n)))
        for start in range(0, self.resamples, size):
            yield min(size, self.resamples - start)


def _bounded(bits: np.random.PCG64, count: int, n: int) -> NDArray[np.int64]:
    """`count` integers below n by multiply and shift; the bias is below n / 2^32."""
    words = bits.random_raw(math.ceil(count / 2)).astype("<u8").view("<u4")[:count]
    scaled: NDArray[np.int64] = ((words.astype(np.uint64) * np.uint64(n)) >> np.uint64(32)).astype(np.int64)
    return scaled


def power_of_two_near(values: Matrix) -> float:
    """The power of two above the largest size among the values: dividing by it loses no digit. 1 when all are 0."""
    largest = float(np.max(np.abs(values))) if values.size else 0.0
    return math.ldexp(1.0, max(math.frexp(largest)[1], -1000)) if largest else 1.0


def whole_columns(values: Matrix, largest_weight: int) -> tuple[Matrix, float]:
    """Values rounded to whole multiples of a unit, and that unit, so that weighted sums of squares stay exact.

    `largest_weight` bounds the sum of one row of weights. With 500 units this keeps 22 bits, far finer than the noise
    of any feasible number of resamples.
    """
    largest = float(np.max(np.abs(values))) if values.size else 0.0
    if largest == 0.0:
        return np.zeros_like(values), 1.0
    bits = min(24, (52 - max(1, largest_weight).bit_length()) // 2)
    # A power of two as the unit: multiplying by it is exact, so equal inputs give equal columns everywhere.
    unit = math.ldexp(1.0, max(math.frexp(largest)[1] - bits, -1074))
    return np.rint(values / unit), unit
