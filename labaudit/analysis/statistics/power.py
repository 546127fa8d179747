"""A standard error to the smallest true effect that such an experiment would probably have seen."""

from __future__ import annotations

from labaudit.analysis.statistics.normal import t_quantile

POWER = 0.8


def minimal_detectable_effect(standard_error: float, df: float, level: float) -> float | None:
    """The effect found with probability 0.8 by a two-sided test at 1 - level; None without a spread or a free unit.

    (t(1 - alpha/2) + t(0.8)) * SE: the usual planning formula with Student quantiles, so that it does not flatter few
    tasks.
    """
    if df <= 0.0 or standard_error <= 0.0:
        return None
    return (t_quantile(0.5 + level / 2, float(df)) + t_quantile(POWER, float(df))) * standard_error
