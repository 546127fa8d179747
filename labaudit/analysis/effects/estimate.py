"""Task differences to an estimate with its interval and p-value, by the method that fits the effect.

| effect                        | interval                                   | p                                    |
|-------------------------------|--------------------------------------------|--------------------------------------|
| risk_diff, one replicate      | Tango score                                | exact McNemar                        |
| risk_diff, mean_diff          | symmetric studentised task bootstrap       | exact sign-flip, else bootstrap      |
| median_diff                   | order statistics                           | sign test                            |
| log_ratio                     | symmetric studentised task bootstrap       | sign-flip                            |

Work is in two halves, so that all comparisons with equally many units share their resamples: `prepare` says what is
needed, `finish` says what was found. No spread at all gives +-z^2/(n+z^2) of the metric's range, never a zero-width
interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.effects.differences import TaskDifferences, resampling_units
from labaudit.analysis.effects.plan import AnalysisSettings, MetricPlan
from labaudit.analysis.statistics import lattice as lattice_methods
from labaudit.analysis.statistics import mcnemar, order_statistics, sign_flips
from labaudit.analysis.statistics.bootstrap import Bootstrapped, UnitSums, bootstrap_many
from labaudit.analysis.statistics.normal import t_two_sided, z_two_sided
from labaudit.analysis.statistics.paired_proportions import PairedTable, tango_interval
from labaudit.analysis.statistics.resample_counts import Resampler


@dataclass(frozen=True)
class IntervalFound:
    """Two ends and how they were found; None ends come with the code of the reason."""

    method: str
    low: float | None
    high: float | None
    achieved_level: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Estimate:
    """An effect and what can be said about it; `notes` are codes of warnings."""

    value: float
    standard_error: float | None
    interval: IntervalFound
    percentile: IntervalFound
    p: float | None
    p_method: str | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """A comparison before its resamples are drawn."""

    metric: MetricPlan
    differences: TaskDifferences
    units: UnitSums
    clustered: bool
    lattice: lattice_methods.Lattice | None
    route: str
    notes: tuple[str, ...]

    @property
    def needs_bootstrap(self) -> bool:
        """Whether `finish` will ask for resamples."""
        if self.units.n < 2 or self.units.standard_error == 0.0:
            return False
        if self.route == "studentized":
            return True
        return self.route in ("tango", "percentile") and not self.exact_percentile

    @property
    def needs_sign_flips(self) -> bool:
        """Whether `finish` will ask for flipped signs."""
        return self.metric.effect == "log_ratio" and self.units.n > 1

    @property
    def exact_percentile(self) -> bool:
        """The percentile interval needs no resamples."""
        return self.lattice is not None and not self.clustered

    @property
    def scale(self) -> float:
        """The range within which unseen variation could lie: 1 for a proportion, else what the data span."""
        return 1.0 if _is_proportion(self.metric) else self.differences.value_range


def prepare(
    differences: TaskDifferences, metric: MetricPlan, settings: AnalysisSettings, clusters: NDArray[np.int64] | None
) -> Prepared:
    """Chooses the route and finds the lattice, if there is one."""
    units = resampling_units(differences, clusters)
    found = None
    if metric.effect in ("risk_diff", "mean_diff"):
        found = lattice_methods.find_lattice(units.sums, differences.replicates_lcm)
    # A declared worst value between 0 and 1 makes differences that no table of successes holds.
    whole = bool(np.all(np.isin(differences.difference, (-1.0, 0.0, 1.0))))
    route, notes = _route(metric, settings.method, differences.single_replicate and clusters is None and whole)
    return Prepared(metric, differences, units, clusters is not None, found, route, notes)


def _is_proportion(metric: MetricPlan) -> bool:
    return metric.type == "binary" and metric.effect in ("risk_diff", "mean_diff")


def _route(metric: MetricPlan, method: str, pairs_of_single_values: bool) -> tuple[str, tuple[str, ...]]:
    fitting = {"median_diff": ("order_statistics",), "log_ratio": ("studentized", "percentile")}.get(
        metric.effect, ("studentized", "percentile")
    )
    if _is_proportion(metric) and pairs_of_single_values:
        fitting = ("tango", *fitting)
    if method == "auto":
        return fitting[0], ()
    if method in fitting:
        return method, ()
    return fitting[0], ("method_not_applicable",)


def estimate_all(prepared: Sequence[Prepared], resampler: Resampler, level: float) -> list[Estimate]:
    """Finishes many comparisons at once, drawing each set of resamples and signs a single time."""
    to_resample = [i for i, one in enumerate(prepared) if one.needs_bootstrap]
    to_flip = [i for i, one in enumerate(prepared) if one.needs_sign_flips]
    resampled = dict(zip(to_resample, bootstrap_many([prepared[i].units for i in to_resample], resampler), strict=True))
    sums = [prepared[i].units.sums for i in to_flip]
    flipped = dict(zip(to_flip, sign_flips.sign_flip_many(sums, resampler), strict=True))
    return [finish(one, resampled.get(i), flipped.get(i), level) for i, one in enumerate(prepared)]


def finish(
    prepared: Prepared, resampled: Bootstrapped | None, flipped: tuple[float, str] | None, level: float
) -> Estimate:
    """The estimate; what `needs_bootstrap` and `needs_sign_flips` asked for is there."""
    median = prepared.route == "order_statistics"
    estimate = _median_estimate(prepared, level) if median else _mean_estimate(prepared, resampled, flipped, level)
    if parted(estimate.interval.low, estimate.interval.high, estimate.p, level):
        return replace(estimate, notes=(*estimate.notes, "interval_and_p_disagree"))
    return estimate


def _mean_estimate(
    prepared: Prepared, resampled: Bootstrapped | None, flipped: tuple[float, str] | None, level: float
) -> Estimate:
    percentile = _percentile(prepared, resampled, level)
    interval, notes = _interval(prepared, resampled, percentile, level)
    p, p_method = _p_value(prepared, resampled, flipped)
    return Estimate(
        value=prepared.units.effect,
        standard_error=prepared.units.standard_error if prepared.units.n > 1 else None,
        interval=_within_metric(prepared, interval),
        percentile=percentile,
        p=p,
        p_method=p_method,
        notes=(*prepared.notes, *notes),
    )


def _interval(
    prepared: Prepared, resampled: Bootstrapped | None, percentile: IntervalFound, level: float
) -> tuple[IntervalFound, tuple[str, ...]]:
    if prepared.route == "tango":
        low, high = tango_interval(paired_table(prepared.differences), level)
        return IntervalFound("tango", low, high), ()
    if prepared.units.n < 2:
        return IntervalFound(prepared.route, None, None, reason="one_unit"), ()
    if prepared.units.standard_error == 0.0 or resampled is None:
        if prepared.units.standard_error > 0.0 and percentile.low is not None:
            return percentile, ()
        return zero_variance_interval(prepared.units.effect, prepared.units.n, prepared.scale, level)
    unresolved = () if resampled.resolves(level) else ("few_resamples",)
    if prepared.route == "percentile":
        return percentile, unresolved
    found = resampled.symmetric_interval(level)
    if found is not None and found[0] < found[1]:
        return IntervalFound("studentized", *found), unresolved
    return _sparse_interval(prepared, level), unresolved or ("few_informative_tasks",)


def zero_variance_interval(
    effect: float, n: int, scale: float, level: float
) -> tuple[IntervalFound, tuple[str, ...]]:
    """All units agree: Wilson's bound on what n agreeing units can hide, times the metric's range."""
    z = z_two_sided(level)
    half = scale * z * z / (n + z * z)
    if half == 0.0:
        return IntervalFound("zero_variance_bound", None, None, reason="constant_metric"), ("zero_variance",)
    return IntervalFound("zero_variance_bound", effect - half, effect + half), ("zero_variance",)


def _sparse_interval(prepared: Prepared, level: float) -> IntervalFound:
    """So few units differ that many resamples have no spread: Student's interval, at least as wide as without any."""
    units, z = prepared.units, z_two_sided(level)
    half = t_two_sided(level, float(units.n - 1)) * units.standard_error
    widest = float(np.max(np.abs(units.sums / units.tasks - units.effect)))
    half = max(half, widest * z * z / (units.n + z * z))
    return IntervalFound("student_t", units.effect - half, units.effect + half)


def _percentile(prepared: Prepared, resampled: Bootstrapped | None, level: float) -> IntervalFound:
    if prepared.exact_percentile and prepared.lattice is not None:
        low, high = lattice_methods.percentile_interval(prepared.lattice, level)
        method = "percentile_exact"
    elif resampled is not None:
        low, high = resampled.percentile_interval(level)
        method = "percentile_monte_carlo"
    else:
        return IntervalFound("percentile", None, None, reason="one_unit" if prepared.units.n < 2 else "zero_variance")
    if low == high:
        return IntervalFound(method, None, None, reason="zero_variance")
    return IntervalFound(method, low, high)


def _p_value(
    prepared: Prepared, resampled: Bootstrapped | None, flipped: tuple[float, str] | None
) -> tuple[float | None, str | None]:
    if prepared.route == "tango":
        table = paired_table(prepared.differences)
        return mcnemar.exact_p(table.gained, table.lost), "mcnemar_exact"
    if prepared.lattice is not None:
        return lattice_methods.sign_flip_p(prepared.lattice.multiples), "sign_flip_exact"
    if prepared.units.standard_error == 0.0 and prepared.units.n > 1:
        return sign_flips.all_equal_p(prepared.units.sums), "sign_flip_exact"
    if flipped is not None:
        return flipped
    return (None, None) if resampled is None else (resampled.p_value(), "bootstrap_studentized")


def _median_estimate(prepared: Prepared, level: float) -> Estimate:
    values = prepared.units.sums / prepared.units.tasks
    centre = order_statistics.median(values)
    said = (*prepared.notes, "median_of_clusters") if prepared.clustered else prepared.notes
    notes = said
    if len(values) < 2:
        interval = IntervalFound("order_statistics", None, None, reason="one_unit")
    else:
        found = order_statistics.median_interval(values, level)
        interval = IntervalFound("order_statistics", found.low, found.high, found.achieved_level)
        if found.achieved_level < level:
            notes = (*notes, "level_not_reached")
        if found.widened:
            notes = (*notes, "ties_widened")
        if found.low == found.high:
            interval, more = zero_variance_interval(centre, len(values), prepared.differences.value_range, level)
            notes = (*said, *more)
    low, high = order_statistics.bootstrap_median_interval(values, level)
    percentile = IntervalFound("percentile_exact", low, high) if low < high else _no_percentile()
    p = order_statistics.sign_p(values)
    return Estimate(centre, None, interval, percentile, p, "sign_test", notes)


def _no_percentile() -> IntervalFound:
    return IntervalFound("percentile_exact", None, None, reason="zero_variance")


def paired_table(differences: TaskDifferences) -> PairedTable:
    """The 2x2 table of single binary values."""
    gained = int(np.count_nonzero(differences.difference > 0))
    lost = int(np.count_nonzero(differences.difference < 0))
    both = int(np.count_nonzero((differences.variant_mean == 1.0) & (differences.baseline_mean == 1.0)))
    return PairedTable(both=both, gained=gained, lost=lost, neither=differences.n - gained - lost - both)


def _within_metric(prepared: Prepared, interval: IntervalFound) -> IntervalFound:
    """A difference of proportions lies between -1 and 1."""
    if not _is_proportion(prepared.metric) or interval.low is None or interval.high is None:
        return interval
    return replace(interval, low=max(-1.0, interval.low), high=min(1.0, interval.high))


def parted(low: float | None, high: float | None, p: float | None, level: float) -> bool:
    """The interval and the p-value come from different arguments and may part near the line; then both are shown."""
    if low is None or high is None or p is None:
        return False
    return (low > 0.0 or high < 0.0) != (p < 1.0 - level)


def smallest_possible_p(prepared: Prepared) -> float:
    """What p would be if every informative unit had pointed the same way."""
    informative = int(np.count_nonzero(prepared.units.sums))
    return math.ldexp(2.0, -informative) if 0 < informative < 1000 else float(informative == 0)
