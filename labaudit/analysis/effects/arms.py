"""One arm's grid to its own summary: how many values, which are missing and why, mean, errors, pass@k and pass^k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.effects.missingness import ArmMissing, count_missing
from labaudit.analysis.effects.pairing import ArmGrid
from labaudit.analysis.effects.plan import AnalysisSettings, MetricPlan
from labaudit.analysis.statistics.clustered import clustered_mean
from labaudit.analysis.statistics.pass_k import pass_k
from labaudit.analysis.trials.table import STATUSES, TrialTable
from labaudit.records.comparisons import Arm, MissingByCause, PassKRow

_ALWAYS_SHOWN_K = 5
_LARGEST_K = 16


@dataclass(frozen=True)
class TrialCounts:
    """What became of the scheduled trials of one variant."""

    scheduled: int
    lost: int
    excluded: int
    retried: int


def count_trials(table: TrialTable) -> dict[str, TrialCounts]:
    """The counts of every variant that has a trial."""
    found = {}
    for code, variant in enumerate(table.variants):
        mine = table.variant == code
        found[variant] = TrialCounts(
            scheduled=int(np.count_nonzero(mine)),
            lost=int(np.count_nonzero(mine & (table.status == STATUSES.index("lost")))),
            excluded=int(np.count_nonzero(mine & (table.status == STATUSES.index("excluded")))),
            retried=int(np.count_nonzero(mine & (table.attempts > 1))),
        )
    return found


def summarise_arm(
    variant: str,
    grid: ArmGrid,
    metric: MetricPlan,
    settings: AnalysisSettings,
    counts: TrialCounts | None,
    clusters: NDArray[np.int64] | None,
) -> Arm:
    """The arm from its observed values; imputed ones never enter here."""
    missing = count_missing(grid)
    tasks, _ = np.nonzero(grid.present)
    groups = tasks if clusters is None else clusters[tasks]
    moments = clustered_mean(grid.values[grid.present], groups.astype(np.int64))
    known = counts or TrialCounts(0, 0, 0, 0)
    return Arm(
        variant_id=variant,
        scheduled=missing.scheduled,
        valid=missing.scheduled - missing.total,
        missing=missing.total,
        missing_by_cause=by_cause(missing),
        lost=known.lost,
        excluded=known.excluded,
        retried=known.retried,
        tasks=int(np.count_nonzero(np.any(grid.present, axis=1))),
        mean=moments.mean if moments else None,
        naive_se=moments.naive_se if moments else None,
        clustered_se=moments.clustered_se if moments else None,
        pass_k=tuple(_pass_rows(grid, metric, settings)) if metric.type == "binary" else (),
    )


def by_cause(missing: ArmMissing) -> MissingByCause:
    """The counts as a record."""
    return MissingByCause(**missing.by_cause)


def _pass_rows(grid: ArmGrid, metric: MetricPlan, settings: AnalysisSettings) -> Sequence[PassKRow]:
    scheduled = np.any(grid.scheduled, axis=1)
    best = 1.0 if metric.direction == "higher" else 0.0
    successes = np.count_nonzero(grid.present & (grid.values == best), axis=1)[scheduled].tolist()
    counted = grid.scheduled if settings.missingness == "treat_as_failure" else grid.present
    totals = np.count_nonzero(counted, axis=1)[scheduled].tolist()
    largest = max(_ALWAYS_SHOWN_K, min(_LARGEST_K, grid.values.shape[1]))
    found = (pass_k(totals, successes, k) for k in range(1, largest + 1))
    return [
        PassKRow(k=one.k, pass_at_k=one.pass_at_k, pass_hat_k=one.pass_hat_k, n_tasks=one.n_tasks, reason=one.reason)
        for one in found
    ]
