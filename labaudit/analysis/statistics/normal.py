"""Confidence levels to quantiles of the normal and t distributions."""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

from labaudit.errors import BadInput

_STANDARD = NormalDist()


def check_level(level: float) -> float:
    """`level` itself when it can be a confidence level, else BadInput."""
    if not 0.0 < level < 1.0:
        raise BadInput(
            f"a confidence level of {level} is not between 0 and 1",
            where="analysis_plan.ci.level",
            hint="0.95 is the usual one",
        )
    return level


@lru_cache(maxsize=64)
def z_two_sided(level: float) -> float:
    """The z with `level` of the normal distribution between -z and z."""
    return _STANDARD.inv_cdf(0.5 + check_level(level) / 2)


@lru_cache(maxsize=1024)
def t_two_sided(level: float, df: float) -> float:
    """The t with `level` of Student's distribution between -t and t."""
    return t_quantile(0.5 + check_level(level) / 2, df)


@lru_cache(maxsize=1024)
def t_quantile(probability: float, df: float) -> float:
    """The quantile of Student's t distribution."""
    from scipy.special import stdtrit

    return float(stdtrit(df, probability))


def t_two_sided_p(t: float, df: float) -> float:
    """P(|T| >= |t|) for Student's t."""
    from scipy.special import stdtr

    return min(1.0, 2.0 * float(stdtr(df, -abs(t))))


def normal_cdf(x: float) -> float:
    """P(Z <= x)."""
    return _STANDARD.cdf(x)


def normal_quantile(probability: float) -> float:
    """The x with P(Z <= x) = probability."""
    return _STANDARD.inv_cdf(probability)
