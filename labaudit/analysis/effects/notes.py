"""A comparison to the warnings that must stand beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from labaudit.analysis.effects.draft import Draft
from labaudit.analysis.effects.estimate import Estimate, Prepared, smallest_possible_p
from labaudit.analysis.effects.plan import AnalysisSettings
from labaudit.analysis.effects.wording import coded
from labaudit.analysis.statistics.bounds import differential_missingness_p
from labaudit.records.comparisons import Coded

FEW_UNITS = 20
DIFFERENTIAL_ALPHA = 0.05
# Cochran's rule (Sampling Techniques, 1977, 2.15): a mean needs more than 25 times the squared skewness of its values.
COCHRAN = 25.0
# Values that are never negative cannot be normal with a standard deviation beyond half their mean.
WIDE_FOR_POSITIVE = 0.5
ENOUGH_FOR_WIDE = 1000


def comparison_warnings(draft: Draft, estimate: Estimate | None, settings: AnalysisSettings) -> Iterator[Coded]:
    """In the order a reader should meet them: about the design, about what is missing, about the numbers."""
    yield from _about_the_design(draft)
    yield from _about_missing_values(draft)
    if estimate is not None:
        yield from _about_the_numbers(draft, estimate, settings)


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
    if draft.cells is not None and draft.cells.imputed_values:
        yield coded("imputed_values", imputed=draft.cells.imputed_values)
    if draft.cells is not None and draft.cells.failure_values:
        yield coded("failure_values", filled=draft.cells.failure_values)


def _about_the_numbers(draft: Draft, estimate: Estimate, settings: AnalysisSettings) -> Iterator[Coded]:
    prepared = draft.prepared
    if prepared is not None:
        counts = np.concatenate([prepared.differences.variant_n, prepared.differences.baseline_n])
        if counts.min() != counts.max():
            yield coded("unequal_replicates", low=int(counts.min()), high=int(counts.max()))
        for code in interval_doubts(prepared):
            yield coded(code, units=prepared.units.n)
        informative, smallest = int(np.count_nonzero(prepared.units.sums)), smallest_possible_p(prepared)
        if informative and smallest > 1.0 - settings.level and draft.metric.role != "unplanned":
            yield coded("cannot_reach_level", informative=informative, smallest=smallest)
    for note in estimate.notes:
        if note == "interval_and_p_disagree" and draft.metric.role == "unplanned":
            continue  # no p-value is shown
        if note == "zero_variance":
            yield coded("zero_variance_bound")
        else:
            yield coded(note, method=settings.method, achieved=estimate.interval.achieved_level or 0.0)


def interval_doubts(prepared: Prepared) -> Iterator[str]:
    """Codes of the warnings that an interval may cover less often than it says."""
    if prepared.units.n < FEW_UNITS:
        yield "few_tasks"
    if is_skewed(prepared):
        yield "skewed_metric"


def is_skewed(prepared: Prepared) -> bool:
    """A difference of means over too few tasks for values that are skewed, or must be.

    The task means of both arms are looked at rather than the differences, and two signs count: the skewness of the
    sample, and a spread that only a long tail gives to values that are never negative. A sample that missed the tail
    looks harmless by its skewness exactly when its interval is wrong; the second sign catches most of those.
    """
    if prepared.metric.type == "binary" or prepared.metric.effect != "mean_diff":
        return False
    means = (prepared.differences.variant_mean + prepared.differences.baseline_mean) / 2
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
