"""A draft and its estimate to the record of one comparison: numbers with their methods, nulls with their reasons."""

from __future__ import annotations

import math

import numpy as np

from labaudit.analysis.effects.draft import Draft
from labaudit.analysis.effects.estimate import Estimate, IntervalFound
from labaudit.analysis.effects.notes import comparison_warnings
from labaudit.analysis.effects.plan import AnalysisSettings
from labaudit.analysis.effects.wording import coded
from labaudit.analysis.statistics.bounds import differential_missingness_p, manski_bounds
from labaudit.analysis.statistics.power import POWER, minimal_detectable_effect
from labaudit.analysis.statistics.within_tasks import within_task_effect
from labaudit.records.comparisons import (
    Arms,
    Bounds,
    Comparison,
    Detectable,
    EstimandResult,
    Estimands,
    Interval,
    Missingness,
    PValue,
    Ratio,
    Replicates,
)


def build_comparison(draft: Draft, estimate: Estimate | None, settings: AnalysisSettings) -> Comparison:
    """The record, its p-value not yet corrected: that needs the whole family."""
    metric = draft.metric
    estimands = Estimands(
        tasks_like_these=_sampled_tasks(draft, estimate, settings),
        this_task_set=_fixed_tasks(draft, settings),
    )
    chosen = getattr(estimands, settings.estimand)
    variant, baseline = draft.arms
    return Comparison(
        id=f"{draft.variant_id}/{metric.name}",
        variant=draft.variant_id,
        metric=metric.name,
        role=metric.role,
        type=metric.type,
        direction=metric.direction,
        effect=metric.effect,
        source=metric.source,
        declared=metric.declared,
        self_reported=metric.self_reported,
        status="not_estimable" if estimate is None else "estimated",
        reason=draft.refusal,
        design="paired" if draft.paired else "unpaired",
        tasks=draft.tasks,
        n_tasks=_compared_tasks(draft),
        n_pairs=int(np.count_nonzero(draft.variant.present & draft.baseline.present)),
        n_units=_compared_units(draft),
        replicates=_replicates(draft),
        arms=Arms(baseline=baseline, variant=variant),
        estimand=settings.estimand,
        estimate=chosen.estimate,
        se=chosen.se,
        ratio=_ratio(metric.effect, chosen),
        interval=chosen.interval,
        percentile_interval=_interval(estimate.percentile if estimate else None, settings.level, draft),
        p=_raw_p(draft, chosen),
        favours=None,
        estimands=estimands,
        minimal_detectable_effect=_detectable(draft, estimate, settings.level),
        manski_bounds=_manski(draft),
        missingness=_missingness(draft, settings),
        warnings=tuple(comparison_warnings(draft, estimate, settings, chosen)),
    )


def _sampled_tasks(draft: Draft, estimate: Estimate | None, settings: AnalysisSettings) -> EstimandResult:
    if estimate is None:
        return _no_estimand(draft, settings.level)
    planned = draft.metric.role != "unplanned"
    return EstimandResult(
        estimate=estimate.value,
        se=estimate.standard_error,
        interval=_interval(estimate.interval, settings.level, draft),
        p=estimate.p if planned else None,
        p_method=estimate.p_method if planned else None,
        reason=None if planned else coded("not_in_plan"),
    )


def _fixed_tasks(draft: Draft, settings: AnalysisSettings) -> EstimandResult:
    """Only for pairs: without the same tasks in both arms there is no task set to speak of."""
    prepared, cells = draft.prepared, draft.cells
    if prepared is None or cells is None:
        return _no_estimand(draft, settings.level)
    if draft.metric.effect == "median_diff":
        return _no_estimand(draft, settings.level, "within_not_for_median")
    log = draft.metric.effect == "log_ratio"
    found = within_task_effect(
        cells.variant, cells.baseline, settings.level, prepared.scale, log=log, stood_in=cells.forced_zero
    )
    planned = draft.metric.role != "unplanned"
    if found.low is None or found.high is None or found.low == found.high:
        reason = coded(found.reason or "constant_metric")
        missing = Interval(
            method=None, level=settings.level, low=None, high=None, achieved_level=None, reason=reason
        )
        return EstimandResult(
            estimate=found.effect, se=found.standard_error, interval=missing, p=None, p_method=None, reason=reason
        )
    interval = IntervalFound(found.method or "satterthwaite_t", found.low, found.high)
    if draft.metric.type == "binary" and not log:
        interval = IntervalFound(interval.method, max(-1.0, found.low), min(1.0, found.high))
    return EstimandResult(
        estimate=found.effect,
        se=found.standard_error,
        interval=_interval(interval, settings.level, draft),
        p=found.p if planned else None,
        p_method=found.method if planned and found.p is not None else None,
        reason=None if planned else coded("not_in_plan"),
    )


def _no_estimand(draft: Draft, level: float, code: str = "not_estimated") -> EstimandResult:
    reason = draft.refusal or coded(code)
    return EstimandResult(
        estimate=None, se=None, interval=_interval(None, level, draft, code), p=None, p_method=None, reason=reason
    )


def _interval(found: IntervalFound | None, level: float, draft: Draft, code: str = "not_estimated") -> Interval:
    if found is None:
        reason = draft.refusal or coded(code)
        return Interval(method=None, level=level, low=None, high=None, achieved_level=None, reason=reason)
    usable = found.low is not None and found.high is not None
    return Interval(
        method=found.method,
        level=level,
        low=found.low,
        high=found.high,
        achieved_level=found.achieved_level,
        reason=None if usable else coded(found.reason or "not_estimated"),
    )


def _raw_p(draft: Draft, chosen: EstimandResult) -> PValue:
    planned = draft.metric.role != "unplanned"
    reason = None
    if chosen.p is None:
        reason = draft.refusal or coded("no_p_value" if planned else "not_in_plan")
    return PValue(
        value=chosen.p,
        method=chosen.p_method,
        adjusted=None,
        correction=None,
        family=None,
        family_size=None,
        reason=reason,
    )


def _ratio(effect: str, chosen: EstimandResult) -> Ratio | None:
    if effect != "log_ratio" or chosen.estimate is None:
        return None
    low, high = (None if end is None else _exp(float(end)) for end in (chosen.interval.low, chosen.interval.high))
    estimate = _exp(float(chosen.estimate))
    return None if estimate is None else Ratio(estimate=estimate, low=low, high=high)


def _exp(value: float) -> float | None:
    """e^value, None where a double cannot hold it."""
    return math.exp(value) if value < 700 else None


def _replicates(draft: Draft) -> Replicates:
    counts = draft.replicate_counts
    return Replicates(min=int(counts.min()), max=int(counts.max())) if len(counts) else Replicates(min=0, max=0)


def _compared_tasks(draft: Draft) -> int:
    if draft.prepared is not None:
        return draft.prepared.differences.n
    if draft.unpaired is not None:
        return len(draft.unpaired.variant.means) + len(draft.unpaired.baseline.means)
    return 0


def _compared_units(draft: Draft) -> int:
    if draft.prepared is not None:
        return draft.prepared.units.n
    if draft.unpaired is not None:
        return draft.unpaired.variant.units.n + draft.unpaired.baseline.units.n
    return 0


def _detectable(draft: Draft, estimate: Estimate | None, level: float) -> Detectable:
    value, code = None, "not_estimated" if estimate is None else "no_spread"
    if draft.metric.effect == "median_diff" and estimate is not None:
        code = "detectable_not_for_median"
    elif draft.prepared is not None:
        value = minimal_detectable_effect(draft.prepared.units.standard_error, draft.prepared.units.n - 1, level)
    elif draft.unpaired is not None:
        error, df = draft.unpaired.estimate.standard_error, draft.unpaired.df
        value = minimal_detectable_effect(error or 0.0, df or 0.0, level)
    reason = None if value is not None else draft.refusal or coded(code)
    return Detectable(value=value, power=POWER, reason=reason)


def _manski(draft: Draft) -> Bounds:
    if draft.metric.type != "binary":
        return Bounds(low=None, high=None, reason=coded("unbounded_metric"))
    if draft.metric.effect not in ("risk_diff", "mean_diff"):
        return Bounds(low=None, high=None, reason=coded("bounds_not_for_effect"))
    if draft.refusal is not None and min(arm.scheduled for arm in draft.arms) == 0:
        return Bounds(low=None, high=None, reason=draft.refusal)
    low, high = manski_bounds(
        draft.variant.values, draft.variant.scheduled, draft.baseline.values, draft.baseline.scheduled, 0.0, 1.0
    )
    return Bounds(low=low, high=high, reason=None)


def _missingness(draft: Draft, settings: AnalysisSettings) -> Missingness:
    variant, baseline = draft.arms
    counts = draft.policy_counts
    return Missingness(
        policy=settings.missingness,
        differential_p=differential_missingness_p(
            variant.missing, variant.scheduled, baseline.missing, baseline.scheduled
        ),
        dropped_pairs=counts.dropped_pairs,
        dropped_tasks=counts.dropped_tasks,
        imputed_values=counts.imputed_values,
        failure_values=counts.failure_values,
    )
