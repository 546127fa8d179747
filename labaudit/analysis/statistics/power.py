"""A standard error to the smallest true effect that such an experiment would probably have seen."""

from __future__ import annotations

from labaudit.analysis.statistics.normal import t_quantile

POWER = 0.8


def minimal_detectable_effect(standard_error: float, units: int, level: float) -> float | None:
    """The effect found with probability 0.8 by a two-sided test at 1 - level; None without a spread or a second unit.

    (t(1 - alpha/2) + t(0.8)) * SE: the usual planning formula with Student quantiles, so that it does not flatter few
    tasks.
    """
    if units < 2 or standard_error <= 0.0:
        return None
    df = float(units - 1)
    return (t_quantile(0.5 + level / 2, df) + t_quantile(POWER, df)) * standard_error
