"""A number of tasks and replicates to how often the default intervals hold the truth, by simulation.

Populations whose true effect is known are sampled many times; each sample goes through the same code as a run. The
table counts how often the interval held the truth, overall and among the samples for which the output gave no warning.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.effects.differences import task_differences
from labaudit.analysis.effects.estimate import Estimate, Prepared, estimate_all, prepare
from labaudit.analysis.effects.missingness import ComparedCells
from labaudit.analysis.effects.notes import interval_doubts
from labaudit.analysis.effects.plan import AnalysisSettings, MetricPlan
from labaudit.analysis.populations import POPULATIONS, Population
from labaudit.analysis.statistics.resample_counts import Resampler

Cells = NDArray[np.float64]
_AT_ONCE = 250


@dataclass(frozen=True)
class CoverageRow:
    """One population at one size; shares are None where nothing is left to count."""

    population: str
    effect: str
    tasks: int
    replicates: int
    sets: int
    level: float
    methods: dict[str, int]
    coverage: float
    standard_error: float
    percentile_coverage: float | None
    mean_width: float
    warned: int
    coverage_without_warning: float | None
    no_interval: int

    def as_json(self) -> dict[str, object]:
        """For `--json`."""
        return asdict(self)


def coverage_table(
    sizes: Iterable[tuple[int, int]],
    settings: AnalysisSettings,
    *,
    sets: int,
    populations: Sequence[Population] = POPULATIONS,
) -> list[CoverageRow]:
    """A row per population and (tasks, replicates); level, resamples and seed are those of `settings`."""
    return [
        simulate(population, tasks, replicates, settings, sets)
        for tasks, replicates in sizes
        for population in populations
    ]


def simulate(
    population: Population, tasks: int, replicates: int, settings: AnalysisSettings, sets: int
) -> CoverageRow:
    """One cell of the table."""
    metric = MetricPlan("simulated", population.type, "higher", "primary", population.effect, None, None)
    stream = np.random.Generator(np.random.PCG64([abs(settings.seed), tasks, replicates]))
    truth = population.truth(replicates)
    tally = _Tally(truth)
    for start in range(0, sets, _AT_ONCE):
        count = min(_AT_ONCE, sets - start)
        variant, baseline = population.draw(stream, count, tasks, replicates)
        samples = [_prepared(variant[i], baseline[i], metric, settings) for i in range(count)]
        # Another seed for every block: with one seed all samples would share the luck of its resamples.
        resampler = Resampler(settings.seed + 1 + start, settings.resamples)
        for sample, estimate in zip(samples, estimate_all(samples, resampler, settings.level), strict=True):
            tally.add(sample, estimate)
    return tally.row(population, tasks, replicates, settings.level)


def _prepared(variant: Cells, baseline: Cells, metric: MetricPlan, settings: AnalysisSettings) -> Prepared:
    tasks = np.arange(len(variant))
    cells = ComparedCells(variant, baseline, tasks, np.zeros(len(variant), dtype=bool), 0, 0, 0, 0)
    return prepare(task_differences(cells, log=metric.effect == "log_ratio"), metric, settings, None)


class _Tally:
    """Counts over the samples of one cell."""

    def __init__(self, truth: float) -> None:
        self.truth = truth
        self.methods: dict[str, int] = {}
        self.widths: list[float] = []
        self.held = self.warned = self.held_without = self.percentiles = self.percentile_held = self.without = 0

    def add(self, sample: Prepared, estimate: Estimate) -> None:
        interval = estimate.interval
        self.methods[interval.method] = self.methods.get(interval.method, 0) + 1
        if estimate.percentile.low is not None and estimate.percentile.high is not None:
            self.percentiles += 1
            self.percentile_held += estimate.percentile.low <= self.truth <= estimate.percentile.high
        if interval.low is None or interval.high is None:
            self.without += 1
            return
        held = interval.low <= self.truth <= interval.high
        self.widths.append(interval.high - interval.low)
        self.held += held
        # That interval and p-value part is no doubt about the interval.
        if [*interval_doubts(sample), *(note for note in estimate.notes if note != "interval_and_p_disagree")]:
            self.warned += 1
        else:
            self.held_without += held

    def row(self, population: Population, tasks: int, replicates: int, level: float) -> CoverageRow:
        given = len(self.widths)
        coverage, clean = self.held / max(1, given), given - self.warned
        return CoverageRow(
            population=population.name,
            effect=population.effect,
            tasks=tasks,
            replicates=replicates,
            sets=given + self.without,
            level=level,
            methods=dict(sorted(self.methods.items())),
            coverage=coverage,
            standard_error=math.sqrt(coverage * (1 - coverage) / max(1, given)),
            percentile_coverage=self.percentile_held / self.percentiles if self.percentiles else None,
            mean_width=math.fsum(self.widths) / max(1, given),
            warned=self.warned,
            coverage_without_warning=self.held_without / clean if clean else None,
            no_interval=self.without,
        )
