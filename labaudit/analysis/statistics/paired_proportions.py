"""A paired 2x2 table to intervals for the difference of two proportions.

Counts follow the pairs: `both` succeeded in both arms, `gained` only in the variant, `lost` only in the baseline,
`neither` in none. The difference is variant minus baseline, (gained - lost) / n. Tango's score interval is the default:
it keeps its level at small n and at 0 or 1, where Wald-type intervals collapse.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from labaudit.analysis.statistics.normal import z_two_sided
from labaudit.errors import BadInput


@dataclass(frozen=True)
class PairedTable:
    """How often each of the four outcomes of a pair was seen."""

    both: int
    gained: int
    lost: int
    neither: int

    @property
    def n(self) -> int:
        """Number of pairs."""
        return self.both + self.gained + self.lost + self.neither

    @property
    def difference(self) -> float:
        """Proportion of the variant minus proportion of the baseline."""
        return (self.gained - self.lost) / self.n


def tango_interval(table: PairedTable, level: float = 0.95) -> tuple[float, float]:
    """Tango's (1998) asymptotic score interval; needs only n and the two discordant counts."""
    _need_pairs(table)
    z = z_two_sided(level)

    def excess(delta: float, target: float) -> float:
        return _tango_statistic(table, delta) - target

    estimate = table.difference
    low = -1.0 if estimate <= -1.0 else _falling_root(lambda d: excess(d, z), -1.0, estimate)
    high = 1.0 if estimate >= 1.0 else _falling_root(lambda d: excess(d, -z), estimate, 1.0)
    return low, high


def _tango_statistic(table: PairedTable, delta: float) -> float:
    n, gained, lost = table.n, table.gained, table.lost
    # The restricted maximum likelihood estimate of P(lost) given the difference is the larger root of a quadratic.
    linear = (2 * n - gained + lost) * delta - gained - lost
    constant = -lost * delta * (1.0 - delta)
    root = math.sqrt(max(0.0, linear * linear - 8.0 * n * constant))
    restricted = (root - linear) / (4.0 * n)
    variance = n * (2.0 * restricted + delta * (1.0 - delta))
    shift = gained - lost - n * delta
    if variance <= 0.0:
        return math.copysign(math.inf, shift) if shift else 0.0
    return shift / math.sqrt(variance)


def _falling_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function crosses zero, by bisection down to neighbouring doubles."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if function(middle) > 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def wilson_interval(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of one proportion."""
    z = z_two_sided(level)
    centre = (2 * successes + z * z) / (2 * (n + z * z))
    half = z * math.sqrt(z * z + 4 * successes * (1 - successes / n)) / (2 * (n + z * z))
    return max(0.0, centre - half), min(1.0, centre + half)


def newcombe_interval(table: PairedTable, level: float = 0.95) -> tuple[float, float]:
    """Newcombe's (1998) square-and-add interval for paired proportions (his method 10)."""
    _need_pairs(table)
    n = table.n
    in_variant, in_baseline = table.both + table.gained, table.both + table.lost
    p1, p2 = in_variant / n, in_baseline / n
    low1, high1 = wilson_interval(in_variant, n, level)
    low2, high2 = wilson_interval(in_baseline, n, level)
    phi = _phi(table)
    below, above = (p1 - low1, high2 - p2), (high1 - p1, p2 - low2)
    low = table.difference - math.sqrt(_square_and_add(below, phi))
    high = table.difference + math.sqrt(_square_and_add(above, phi))
    return max(-1.0, low), min(1.0, high)


def _square_and_add(lengths: tuple[float, float], phi: float) -> float:
    a, b = lengths
    return max(0.0, a * a - 2.0 * phi * a * b + b * b)


def _phi(table: PairedTable) -> float:
    both, gained, lost, neither = table.both, table.gained, table.lost, table.neither
    product = (both + gained) * (lost + neither) * (both + lost) * (gained + neither)
    if product == 0:
        return 0.0
    agreement = both * neither - gained * lost
    # Newcombe's continuity correction: only a positive agreement is pulled towards zero, never past it.
    corrected = max(agreement - table.n / 2, 0.0) if agreement > 0 else float(agreement)
    return corrected / math.sqrt(product)


def bonett_price_interval(table: PairedTable, level: float = 0.95) -> tuple[float, float]:
    """Bonett and Price's (2012) adjusted Wald interval: one pseudo-pair in each discordant cell."""
    _need_pairs(table)
    z = z_two_sided(level)
    gained, lost = (table.gained + 1) / (table.n + 2), (table.lost + 1) / (table.n + 2)
    centre = gained - lost
    half = z * math.sqrt((gained + lost - centre * centre) / (table.n + 2))
    return max(-1.0, centre - half), min(1.0, centre + half)


def _need_pairs(table: PairedTable) -> None:
    if table.n == 0:
        raise BadInput("a paired table without pairs has no interval")
