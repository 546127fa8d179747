"""A trial table and a plan to all comparisons, with p-values corrected over the families that the plan fixed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.effects.arms import count_trials, summarise_arm
from labaudit.analysis.effects.comparison import build_comparison
from labaudit.analysis.effects.draft import Draft, draft_comparison
from labaudit.analysis.effects.estimate import Estimate, estimate_all
from labaudit.analysis.effects.pairing import ArmGrid, GridIndex
from labaudit.analysis.effects.plan import AnalysisSettings
from labaudit.analysis.statistics.corrections import adjust
from labaudit.analysis.trials.table import TrialTable
from labaudit.records.comparisons import Arm, Comparison

_ROLE_ORDER = {"primary": 0, "secondary": 1, "unplanned": 2}


class Compared:
    """All comparisons of a run, and the grids they came from."""

    def __init__(
        self, table: TrialTable, settings: AnalysisSettings, clusters: NDArray[np.int64] | None = None
    ) -> None:
        self.table = table
        self.settings = settings
        self.index = GridIndex.of(table)
        self.grids: dict[tuple[str, str], ArmGrid] = {}
        self.arms: dict[tuple[str, str], Arm] = {}
        self._rows: dict[str, NDArray[np.int64]] = {}
        self._read_arms(clusters)
        self.drafts = self._drafts(clusters)
        self.comparisons = self._compare()

    def rows(self, variant: str) -> NDArray[np.int64]:
        """Row numbers of one variant's trials by task and replicate, -1 where nothing was scheduled."""
        if variant not in self._rows:
            self._rows[variant] = self.index.rows(self.table, variant)
        return self._rows[variant]

    def _read_arms(self, clusters: NDArray[np.int64] | None) -> None:
        counts = count_trials(self.table)
        for variant in (self.settings.baseline, *self.settings.variants):
            for metric in self.settings.metrics:
                grid = self.index.arm(self.table, variant, metric.name)
                self.grids[variant, metric.name] = grid
                self.arms[variant, metric.name] = summarise_arm(
                    variant, grid, metric, self.settings, counts.get(variant), clusters
                )

    def _drafts(self, clusters: NDArray[np.int64] | None) -> list[Draft]:
        drafts = []
        ordered = sorted(self.settings.metrics, key=lambda metric: _ROLE_ORDER[metric.role])
        for metric in ordered:
            for variant in self.settings.variants:
                keys = (variant, metric.name), (self.settings.baseline, metric.name)
                grids = self.grids[keys[0]], self.grids[keys[1]]
                arms = self.arms[keys[0]], self.arms[keys[1]]
                drafts.append(draft_comparison(variant, metric, grids, arms, self.settings, clusters))
        return drafts

    def _compare(self) -> list[Comparison]:
        prepared = [(i, draft.prepared) for i, draft in enumerate(self.drafts) if draft.prepared is not None]
        found = estimate_all([one for _, one in prepared], self.settings.resampler, self.settings.level)
        estimates: Mapping[int, Estimate] = {i: one for (i, _), one in zip(prepared, found, strict=True)}
        raw = [
            build_comparison(draft, draft.unpaired.estimate if draft.unpaired else estimates.get(i), self.settings)
            for i, draft in enumerate(self.drafts)
        ]
        return correct_families(raw, self.settings)


def correct_families(comparisons: list[Comparison], settings: AnalysisSettings) -> list[Comparison]:
    """Holm, BH or none over each family; a family's size is what the plan promised, not what could be computed."""
    by_id = {(one.variant, one.metric): position for position, one in enumerate(comparisons)}
    result = list(comparisons)
    for role in ("primary", "secondary"):
        family = settings.family(role)
        if not family:
            continue
        positions = [by_id[key] for key in family]
        method = settings.correction[role]
        values = [_as_float(comparisons[i].p.value) for i in positions]
        for position, adjusted in zip(positions, adjust(values, method), strict=True):
            one = result[position]
            p = one.p.model_copy(
                update={"adjusted": adjusted, "correction": method, "family": role, "family_size": len(family)}
            )
            corrected = one.model_copy(update={"p": p})
            result[position] = corrected.model_copy(update={"favours": _favours(corrected)})
    return result


def _favours(comparison: Comparison) -> str | None:
    """Which side the evidence favours, asking both the corrected p-value and the interval."""
    adjusted, low, high = comparison.p.adjusted, comparison.interval.low, comparison.interval.high
    if comparison.status != "estimated" or adjusted is None or low is None or high is None:
        return None
    if adjusted >= 1.0 - comparison.interval.level or low <= 0.0 <= high:
        return "undecided"
    return "variant" if (low > 0.0) == (comparison.direction == "higher") else "baseline"


def _as_float(value: float | int | None) -> float | None:
    return None if value is None else float(value)
