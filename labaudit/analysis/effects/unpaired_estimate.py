"""Arms on different tasks to a labelled unpaired estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.effects.differences import NoLogarithm
from labaudit.analysis.effects.estimate import Estimate, IntervalFound, parted, zero_variance_interval
from labaudit.analysis.effects.missingness import PolicyCounts
from labaudit.analysis.effects.pairing import ArmGrid
from labaudit.analysis.effects.plan import AnalysisSettings, MetricPlan
from labaudit.analysis.statistics import unpaired
from labaudit.analysis.statistics.bootstrap import UnitSums

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Side:
    """One arm after the policy: its task means on the scale of the effect, and the units that are resampled."""

    means: Vector
    replicates: NDArray[np.int64]
    units: UnitSums


@dataclass(frozen=True)
class Unpaired:
    """The estimate of two arms on different tasks, and what it rests on."""

    estimate: Estimate
    df: float | None
    variant: Side
    baseline: Side
    counts: PolicyCounts

    @property
    def smaller(self) -> int:
        """Units of the smaller arm."""
        return min(self.variant.units.n, self.baseline.units.n)


def unpaired_estimate(
    grids: tuple[ArmGrid, ArmGrid],
    metric: MetricPlan,
    settings: AnalysisSettings,
    clusters: NDArray[np.int64] | None = None,
) -> Unpaired | None:
    """Newcombe with Fisher for single binary values, else Welch on task means; None when an arm has no value.

    `grids` are variant first. Raises NoLogarithm where a log ratio has none.
    """
    fill = metric.failure_value if settings.missingness == "treat_as_failure" else None
    log = metric.effect == "log_ratio"
    read = [_task_means(arm, fill) for arm in grids]
    if log:
        bad = sum(int(np.count_nonzero(means <= 0)) for _, means, _ in read)
        if bad:
            raise NoLogarithm(bad)
    variant, baseline = (_side(part, clusters, log=log) for part in read)
    if not len(variant.means) or not len(baseline.means):
        return None
    most = int(max(variant.replicates.max(), baseline.replicates.max()))
    every = np.concatenate([variant.means, baseline.means])
    shares = metric.type == "binary" and not log
    if shares and most == 1 and clusters is None and bool(np.all((every == 0.0) | (every == 1.0))):
        estimate, df = _proportions(variant, baseline, settings)
    else:
        estimate, df = _welch_estimate(variant, baseline, shares, settings)
    if parted(estimate.interval.low, estimate.interval.high, estimate.p, settings.level):
        estimate = replace(estimate, notes=(*estimate.notes, "interval_and_p_disagree"))
    return Unpaired(estimate, df, variant, baseline, _counts(grids, settings.missingness))


def _proportions(variant: Side, baseline: Side, settings: AnalysisSettings) -> tuple[Estimate, float | None]:
    wins_v, wins_b = int(variant.means.sum()), int(baseline.means.sum())
    n_v, n_b = len(variant.means), len(baseline.means)
    share_v, share_b = wins_v / n_v, wins_b / n_b
    low, high = unpaired.newcombe_independent(wins_v, n_v, wins_b, n_b, settings.level)
    error = math.sqrt(share_v * (1 - share_v) / n_v + share_b * (1 - share_b) / n_b)
    estimate = Estimate(
        value=share_v - share_b,
        standard_error=error or None,
        interval=IntervalFound("newcombe_independent", low, high),
        percentile=_percentile(variant, baseline, settings),
        p=unpaired.fisher_p(wins_v, n_v, wins_b, n_b),
        p_method="fisher_exact",
    )
    return estimate, float(n_v + n_b - 2)


def _welch_estimate(
    variant: Side, baseline: Side, shares: bool, settings: AnalysisSettings
) -> tuple[Estimate, float | None]:
    found = unpaired.welch(variant.units, baseline.units, settings.level)
    interval, notes = IntervalFound("welch_t", found.low, found.high), tuple[str, ...]()
    smaller = min(variant.units.n, baseline.units.n)
    if found.low is None:
        if smaller < 2:
            interval = IntervalFound("welch_t", None, None, reason="one_unit")
        else:
            everything = np.concatenate([variant.means, baseline.means])
            scale = 1.0 if shares else float(everything.max() - everything.min())
            interval, notes = zero_variance_interval(found.difference, smaller, scale, settings.level)
    if shares and interval.low is not None and interval.high is not None:
        interval = replace(interval, low=max(-1.0, interval.low), high=min(1.0, interval.high))
    percentile = _percentile(variant, baseline, settings)
    method = "welch_t" if found.p is not None else None
    error = found.standard_error or None
    return Estimate(found.difference, error, interval, percentile, found.p, method, notes), found.df


def _percentile(variant: Side, baseline: Side, settings: AnalysisSettings) -> IntervalFound:
    low, high = unpaired.independent_percentile(variant.units, baseline.units, settings.resampler, settings.level)
    if low == high:
        return IntervalFound("percentile_independent", None, None, reason="zero_variance")
    return IntervalFound("percentile_independent", low, high)


def _task_means(arm: ArmGrid, fill: float | None) -> tuple[NDArray[np.int64], Vector, NDArray[np.int64]]:
    """The tasks that have a usable value, their means, and how many values each rests on."""
    usable = arm.present if fill is None else arm.scheduled
    filled = np.where(arm.present, arm.values, 0.0 if fill is None else fill)
    counts = np.count_nonzero(usable, axis=1)
    sums = np.where(usable, filled, 0.0).sum(axis=1)
    keep = counts > 0
    return np.flatnonzero(keep), sums[keep] / counts[keep], counts[keep].astype(np.int64)


def _side(
    read: tuple[NDArray[np.int64], Vector, NDArray[np.int64]], clusters: NDArray[np.int64] | None, *, log: bool
) -> Side:
    tasks, means, replicates = read
    scaled = np.log(means) if log else means
    return Side(scaled, replicates, UnitSums.of_groups(scaled, None if clusters is None else clusters[tasks]))


def _counts(grids: tuple[ArmGrid, ArmGrid], policy: str) -> PolicyCounts:
    """What the policy did to each arm on its own: there are no pairs to drop."""
    dropped = imputed = failures = 0
    for arm in grids:
        holes = arm.scheduled & ~arm.present
        told = np.any(arm.present, axis=1)
        if policy == "treat_as_failure":
            failures += int(np.count_nonzero(holes))
            continue
        dropped += int(np.count_nonzero(np.any(arm.scheduled, axis=1) & ~told))
        imputed += int(np.count_nonzero(holes[told])) if policy == "paired_impute" else 0
    return PolicyCounts(0, dropped, imputed, failures)
