"""Two arms with holes to the cells that are compared, by the policy that the plan declared.

paired_drop       a (task, replicate) pair counts when both sides have a value
treat_as_failure  a missing value becomes the worst one
paired_impute     a missing value becomes the mean of the same task's other replicates in the same arm; a task with no
                  value in an arm counts as no difference (0), which never favours the variant
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.effects.pairing import ArmGrid
from labaudit.analysis.trials.table import CAUSES

Cells = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class PolicyCounts:
    """What a policy did with the holes of both arms."""

    dropped_pairs: int
    dropped_tasks: int
    imputed_values: int
    failure_values: int


@dataclass(frozen=True)
class ComparedCells:
    """Values that enter the comparison (NaN where none does), and what the policy did."""

    variant: Cells
    baseline: Cells
    tasks: NDArray[np.int64]
    forced_zero: Mask
    dropped_pairs: int
    dropped_tasks: int
    imputed_values: int
    failure_values: int

    @property
    def counts(self) -> PolicyCounts:
        """The four counts alone."""
        return PolicyCounts(self.dropped_pairs, self.dropped_tasks, self.imputed_values, self.failure_values)


@dataclass(frozen=True)
class ArmMissing:
    """How many scheduled trials of an arm have no value, by cause."""

    scheduled: int
    by_cause: dict[str, int]

    @property
    def total(self) -> int:
        """All missing ones."""
        return sum(self.by_cause.values())


def count_missing(arm: ArmGrid) -> ArmMissing:
    """Causes counted over the scheduled cells of one arm."""
    counts = np.bincount(arm.causes[arm.scheduled], minlength=len(CAUSES))
    return ArmMissing(
        scheduled=int(np.count_nonzero(arm.scheduled)),
        by_cause={name: int(counts[code]) for code, name in enumerate(CAUSES) if code},
    )


def apply_policy(
    variant: ArmGrid, baseline: ArmGrid, policy: str, failure_value: float | None
) -> ComparedCells:
    """Both arms after the policy; rows of tasks that drop out are removed and counted."""
    if policy == "treat_as_failure":
        # Without a declared worst value the caller made sure that nothing is missing.
        return _treat_as_failure(variant, baseline, np.nan if failure_value is None else failure_value)
    if policy == "paired_impute":
        return _paired_impute(variant, baseline)
    return _paired_drop(variant, baseline)


def _paired_drop(variant: ArmGrid, baseline: ArmGrid) -> ComparedCells:
    both = variant.present & baseline.present
    either = variant.scheduled | baseline.scheduled
    keep = _any(both)
    return ComparedCells(
        variant=np.where(both, variant.values, np.nan)[keep],
        baseline=np.where(both, baseline.values, np.nan)[keep],
        tasks=np.flatnonzero(keep),
        forced_zero=np.zeros(int(keep.sum()), dtype=bool),
        dropped_pairs=int(np.count_nonzero(either & ~both)),
        dropped_tasks=int(np.count_nonzero(_any(either) & ~keep)),
        imputed_values=0,
        failure_values=0,
    )


def _treat_as_failure(variant: ArmGrid, baseline: ArmGrid, worst: float) -> ComparedCells:
    sides = []
    filled = 0
    for arm in (variant, baseline):
        holes = arm.scheduled & ~arm.present
        filled += int(np.count_nonzero(holes))
        sides.append(np.where(holes, worst, arm.values))
    keep = _any(variant.scheduled) & _any(baseline.scheduled)
    either = _any(variant.scheduled) | _any(baseline.scheduled)
    return ComparedCells(
        variant=sides[0][keep],
        baseline=sides[1][keep],
        tasks=np.flatnonzero(keep),
        forced_zero=np.zeros(int(keep.sum()), dtype=bool),
        dropped_pairs=0,
        dropped_tasks=int(np.count_nonzero(either & ~keep)),
        imputed_values=0,
        failure_values=filled,
    )


def _paired_impute(variant: ArmGrid, baseline: ArmGrid) -> ComparedCells:
    keep = _any(variant.scheduled) & _any(baseline.scheduled)
    either = _any(variant.scheduled) | _any(baseline.scheduled)
    lacking = ~_any(variant.present) | ~_any(baseline.present)
    stand_in = _stand_in(variant, baseline)
    imputed = 0
    sides = []
    for arm in (variant, baseline):
        # The mean of a task's replicates does not move when holes are filled with it, so the holes stay NaN: filling
        # them would only make the replicates look more numerous than they are.
        imputed += int(np.count_nonzero((arm.scheduled & ~arm.present)[keep]))
        sides.append(np.where(lacking[:, None], np.where(arm.scheduled, stand_in[:, None], np.nan), arm.values))
    return ComparedCells(
        variant=sides[0][keep],
        baseline=sides[1][keep],
        tasks=np.flatnonzero(keep),
        forced_zero=lacking[keep],
        dropped_pairs=0,
        dropped_tasks=int(np.count_nonzero(either & ~keep)),
        imputed_values=imputed,
        failure_values=0,
    )


def _stand_in(variant: ArmGrid, baseline: ArmGrid) -> Cells:
    """Per task the mean of what either arm has, else of everything: put in both arms it makes the difference 0."""
    present = np.hstack([variant.present, baseline.present])
    values = np.where(present, np.hstack([variant.values, baseline.values]), 0.0)
    counts = present.sum(axis=1)
    overall = float(values.sum()) / max(1, int(counts.sum()))
    return np.where(counts > 0, values.sum(axis=1) / np.maximum(counts, 1), overall)


def _any(mask: Mask) -> Mask:
    found: Mask = np.any(mask, axis=1)
    return found
