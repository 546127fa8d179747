"""Successes per task to pass@k and pass^k.

pass@k is the chance that at least one of k tries succeeds, pass^k that all k do. Both are estimated without bias from
c successes in n >= k replicates by counting k-subsets; with fewer replicates than k there is no unbiased estimate,
so the answer is None with a reason, never an extrapolation.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class PassK:
    """Both estimates for one k, or the reason why there is none."""

    k: int
    pass_at_k: float | None
    pass_hat_k: float | None
    n_tasks: int
    reason: str | None


def task_pass_at_k(n: int, c: int, k: int) -> Fraction:
    """1 - C(n-c, k) / C(n, k): the share of k-subsets of the n tries with at least one of the c successes."""
    _check(n, c, k)
    return 1 - Fraction(math.comb(n - c, k), math.comb(n, k))


def task_pass_hat_k(n: int, c: int, k: int) -> Fraction:
    """C(c, k) / C(n, k): the share of k-subsets of the n tries that are all successes."""
    _check(n, c, k)
    return Fraction(math.comb(c, k), math.comb(n, k))


def pass_k(totals: Sequence[int], successes: Sequence[int], k: int) -> PassK:
    """Means over tasks; None when any task has fewer than k valid replicates (dropping it would select tasks)."""
    short = sum(1 for n in totals if n < k)
    if not totals:
        return PassK(k, None, None, 0, "no task has a valid replicate")
    if short:
        reason = f"{short} of {len(totals)} tasks have fewer than {k} valid replicates"
        return PassK(k, None, None, len(totals), reason)
    alike = Counter(zip(totals, successes, strict=True))
    at = sum((times * task_pass_at_k(n, c, k) for (n, c), times in alike.items()), Fraction(0))
    hat = sum((times * task_pass_hat_k(n, c, k) for (n, c), times in alike.items()), Fraction(0))
    return PassK(k, float(at / len(totals)), float(hat / len(totals)), len(totals), None)


def _check(n: int, c: int, k: int) -> None:
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"no pass@{k} from {c} successes in {n} tries")
