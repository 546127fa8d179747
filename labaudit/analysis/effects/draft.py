"""A table, a variant and a metric to a comparison that is ready to be estimated, or to the reason why it cannot be."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.effects.differences import NoLogarithm, task_differences
from labaudit.analysis.effects.estimate import Prepared, prepare
from labaudit.analysis.effects.missingness import ComparedCells, PolicyCounts, apply_policy
from labaudit.analysis.effects.pairing import ArmGrid
from labaudit.analysis.effects.plan import AnalysisSettings, MetricPlan
from labaudit.analysis.effects.unpaired_estimate import Unpaired, unpaired_estimate
from labaudit.analysis.effects.wording import coded
from labaudit.analysis.trials.table import INVALID, NAN
from labaudit.records.comparisons import Arm, Coded, TaskSets


@dataclass(frozen=True)
class Draft:
    """Both arms after the policy; exactly one of `prepared`, `unpaired` and `refusal` says what comes of it."""

    variant_id: str
    metric: MetricPlan
    variant: ArmGrid
    baseline: ArmGrid
    arms: tuple[Arm, Arm]
    tasks: TaskSets
    cells: ComparedCells | None = None
    prepared: Prepared | None = None
    unpaired: Unpaired | None = None
    refusal: Coded | None = None

    @property
    def paired(self) -> bool:
        """Both arms were given the same tasks."""
        return self.tasks.baseline_only == 0 and self.tasks.variant_only == 0

    @property
    def replicate_counts(self) -> NDArray[np.int64]:
        """How many values each compared task mean rests on, of both arms; empty when nothing is compared."""
        if self.prepared is not None:
            return np.concatenate([self.prepared.differences.variant_n, self.prepared.differences.baseline_n])
        if self.unpaired is not None:
            return np.concatenate([self.unpaired.variant.replicates, self.unpaired.baseline.replicates])
        return np.zeros(0, dtype=np.int64)

    @property
    def policy_counts(self) -> PolicyCounts:
        """What the policy did, in pairs or in each arm on its own."""
        if self.unpaired is not None:
            return self.unpaired.counts
        return self.cells.counts if self.cells is not None else PolicyCounts(0, 0, 0, 0)


def draft_comparison(
    variant_id: str,
    metric: MetricPlan,
    grids: tuple[ArmGrid, ArmGrid],
    arms: tuple[Arm, Arm],
    settings: AnalysisSettings,
    clusters: NDArray[np.int64] | None,
) -> Draft:
    """`grids` and `arms` are variant first, baseline second."""
    variant, baseline = grids
    empty = Draft(variant_id, metric, variant, baseline, arms, _task_sets(variant, baseline))
    refusal = _refusal(empty, settings)
    if refusal is not None:
        return replace(empty, refusal=refusal)
    if not empty.paired:
        return _draft_unpaired(empty, settings, clusters)
    cells = apply_policy(variant, baseline, settings.missingness, metric.failure_value)
    if bool(cells.forced_zero.all()):  # true of no task at all, too
        return replace(empty, cells=cells, refusal=coded("no_pair_left", policy=settings.missingness))
    try:
        differences = task_differences(cells, log=metric.effect == "log_ratio")
    except NoLogarithm as error:
        return replace(empty, cells=cells, refusal=coded("nonpositive_for_log_ratio", tasks=error.tasks))
    return replace(empty, cells=cells, prepared=prepare(differences, metric, settings, clusters))


def _draft_unpaired(empty: Draft, settings: AnalysisSettings, clusters: NDArray[np.int64] | None) -> Draft:
    metric = empty.metric
    if metric.effect == "median_diff":
        return replace(empty, refusal=coded("median_needs_pairs"))
    try:
        found = unpaired_estimate((empty.variant, empty.baseline), metric, settings, clusters)
    except NoLogarithm as error:
        return replace(empty, refusal=coded("nonpositive_for_log_ratio", tasks=error.tasks))
    if found is None:
        return replace(empty, refusal=coded("no_pair_left", policy=settings.missingness))
    return replace(empty, unpaired=found)


def _refusal(draft: Draft, settings: AnalysisSettings) -> Coded | None:
    """Why nothing can be compared, before any policy is applied."""
    variant, baseline = draft.arms
    if variant.scheduled == 0:
        return coded("variant_without_trials")
    if baseline.scheduled == 0:
        return coded("baseline_without_trials")
    if variant.valid + baseline.valid == 0:
        missing = variant.missing + baseline.missing
        codes = np.concatenate([draft.variant.causes.reshape(-1), draft.baseline.causes.reshape(-1)])
        unusable = int(np.count_nonzero((codes == INVALID) | (codes == NAN)))
        if unusable:
            return coded("metric_not_usable", invalid=unusable, missing=missing)
        return coded("metric_not_produced", missing=missing)
    holes = variant.missing + baseline.missing
    if settings.missingness == "treat_as_failure" and draft.metric.failure_value is None and holes:
        return coded("worst_not_declared")
    return None


def _task_sets(variant: ArmGrid, baseline: ArmGrid) -> TaskSets:
    in_variant, in_baseline = np.any(variant.scheduled, axis=1), np.any(baseline.scheduled, axis=1)
    return TaskSets(
        matched=int(np.count_nonzero(in_variant & in_baseline)),
        baseline_only=int(np.count_nonzero(in_baseline & ~in_variant)),
        variant_only=int(np.count_nonzero(in_variant & ~in_baseline)),
    )

