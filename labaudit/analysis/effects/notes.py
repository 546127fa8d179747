"""A comparison to the warnings that must stand beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.effects.draft import Draft
from labaudit.analysis.effects.estimate import Estimate, Prepared, parted, smallest_possible_p
from labaudit.analysis.effects.plan import AnalysisSettings, MetricPlan
from labaudit.analysis.effects.wording import coded
from labaudit.analysis.statistics.bounds import differential_missingness_p
from labaudit.records.comparisons import Coded, EstimandResult

FEW_UNITS = 20
DIFFERENTIAL_ALPHA = 0.05
# Cochran's rule (Sampling Techniques, 1977, 2.15): a mean needs more than 25 times the squared skewness of its values.
COCHRAN = 25.0
# Values that are never negative cannot be normal with a standard deviation beyond half their mean.
WIDE_FOR_POSITIVE = 0.5
ENOUGH_FOR_WIDE = 1000
# Tests whose p-value depends on the signs of units alone, or on flipping them, and so has a floor.
COUNTS_SIGNS = frozenset({"mcnemar_exact", "sign_flip_exact", "sign_flip_monte_carlo", "sign_test"})


def comparison_warnings(
    draft: Draft, estimate: Estimate | None, settings: AnalysisSettings, chosen: EstimandResult
) -> Iterator[Coded]:
    """In the order a reader should meet them: about the design, about what is missing, about the numbers.

    `chosen` is the reading of the tasks that the plan asks for: its interval and p-value are those that are shown.
    """
    yield from _about_the_design(draft)
    yield from _about_missing_values(draft)
    if estimate is not None:
        yield from _about_the_units(draft)
        if settings.estimand == "tasks_like_these":
            yield from _about_the_sample(draft, estimate, settings)
        else:
            yield from _about_fixed_tasks(chosen, settings)


def _about_the_design(draft: Draft) -> Iterator[Coded]:
    variant, baseline = draft.arms
    if not draft.metric.declared:
        yield coded("undeclared_metric")
    if draft.metric.role == "primary" and draft.metric.self_reported:
        yield coded("self_reported_primary")
    if not draft.paired and variant.scheduled and baseline.scheduled:
        yield coded(
            "unpaired_tasks", baseline_only=draft.tasks.baseline_only, variant_only=draft.tasks.variant_only
        )
    if variant.retried + baseline.retried:
        yield coded("retried_trials", baseline=baseline.retried, variant=variant.retried)


def _about_missing_values(draft: Draft) -> Iterator[Coded]:
    variant, baseline = draft.arms
    missing, scheduled = variant.missing + baseline.missing, variant.scheduled + baseline.scheduled
    if missing:
        yield coded("missing_values", missing=missing, scheduled=scheduled)
        p = differential_missingness_p(variant.missing, variant.scheduled, baseline.missing, baseline.scheduled)
        if p is not None and p < DIFFERENTIAL_ALPHA:
            yield coded("differential_missingness", p=p)
    counts = draft.policy_counts
    if counts.imputed_values:
        yield coded("imputed_values", imputed=counts.imputed_values)
    if counts.failure_values:
        yield coded("failure_values", filled=counts.failure_values)


def _about_the_units(draft: Draft) -> Iterator[Coded]:
    counts = draft.replicate_counts
    if counts.min() != counts.max():
        yield coded("unequal_replicates", low=int(counts.min()), high=int(counts.max()))
    if draft.prepared is not None:
        for code in interval_doubts(draft.prepared):
            yield coded(code, units=draft.prepared.units.n)
    if draft.unpaired is not None:
        if draft.unpaired.smaller < FEW_UNITS:
            yield coded("few_tasks", units=draft.unpaired.smaller)
        sides = draft.unpaired.variant.means, draft.unpaired.baseline.means
        if _needs_symmetry(draft.metric) and any(skewed_means(means) for means in sides):
            yield coded("skewed_metric")


def _about_the_sample(draft: Draft, estimate: Estimate, settings: AnalysisSettings) -> Iterator[Coded]:
    prepared, planned = draft.prepared, draft.metric.role != "unplanned"
    if prepared is not None and planned and estimate.p_method in COUNTS_SIGNS:
        informative, smallest = int(np.count_nonzero(prepared.units.sums)), smallest_possible_p(prepared)
        if informative and smallest > 1.0 - settings.level:
            yield coded("cannot_reach_level", informative=informative, smallest=smallest)
    units = prepared.units.n if prepared is not None else 0
    for note in estimate.notes:
        if note == "interval_and_p_disagree" and not planned:
            continue  # no p-value is shown
        if note == "zero_variance":
            if estimate.interval.low is not None:  # else the interval's own reason says it
                yield coded("zero_variance_bound")
        else:
            achieved, resamples = estimate.interval.achieved_level or 0.0, settings.resamples
            yield coded(note, method=settings.method, achieved=achieved, units=units, resamples=resamples)


def _about_fixed_tasks(chosen: EstimandResult, settings: AnalysisSettings) -> Iterator[Coded]:
    if chosen.interval.method == "zero_variance_bound":
        yield coded("zero_variance_bound")
    if parted(chosen.interval.low, chosen.interval.high, chosen.p, settings.level):
        yield coded("interval_and_p_disagree")


def interval_doubts(prepared: Prepared) -> Iterator[str]:
    """Codes of the warnings that an interval may cover less often than it says."""
    if prepared.units.n < FEW_UNITS:
        yield "few_tasks"
    if is_skewed(prepared):
        yield "skewed_metric"


def is_skewed(prepared: Prepared) -> bool:
    """A difference of means over too few tasks for values that are skewed, or must be.

    The task means of both arms are looked at rather than the differences.
    """
    if not _needs_symmetry(prepared.metric):
        return False
    return skewed_means((prepared.differences.variant_mean + prepared.differences.baseline_mean) / 2)


def _needs_symmetry(metric: MetricPlan) -> bool:
    return metric.type != "binary" and metric.effect == "mean_diff"


def skewed_means(means: NDArray[np.float64]) -> bool:
    """Two signs count: the skewness of the sample, and a spread that only a long tail gives to values never negative.

    A sample that missed the tail looks harmless by its skewness exactly when its interval is wrong; the second sign
    catches most of those.
    """
    centre = float(means.mean())
    deviations = means - centre
    largest = float(np.max(np.abs(deviations)))
    if len(means) < 3 or largest == 0.0:
        return False
    deviations = deviations / largest
    spread = float((deviations**2).mean())
    wide = largest * math.sqrt(spread) > WIDE_FOR_POSITIVE * centre
    if len(means) < ENOUGH_FOR_WIDE and means.min() >= 0.0 and wide:
        return True
    skewness = float((deviations**3).mean()) / spread**1.5
    return bool(len(means) < COCHRAN * skewness**2)
