"""A trial table to grids: for one metric and one variant, the values of both arms by task and replicate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.trials.table import UNSCHEDULED, TrialTable

Cells = NDArray[np.float64]
Codes = NDArray[np.uint8]


@dataclass(frozen=True)
class ArmGrid:
    """One arm: rows are all tasks of the run in order of id, columns are replicates."""

    values: Cells
    causes: Codes

    @property
    def scheduled(self) -> NDArray[np.bool_]:
        """Cells for which a trial was scheduled."""
        return np.not_equal(self.causes, UNSCHEDULED)

    @property
    def present(self) -> NDArray[np.bool_]:
        """Cells with a usable value."""
        return np.equal(self.causes, 0)


@dataclass(frozen=True)
class GridIndex:
    """Where each row of a table stands in the grids; made once for all metrics."""

    tasks: int
    replicates: NDArray[np.int64]
    cell: NDArray[np.int64]
    variant: NDArray[np.int32]
    duplicates: int

    @classmethod
    def of(cls, table: TrialTable) -> GridIndex:
        """A (variant, task, replicate) that stands twice counts once, as its first row; the rest are `duplicates`."""
        replicates, column = np.unique(table.repl, return_inverse=True)
        cell = table.task.astype(np.int64) * len(replicates) + column
        keys = table.variant.astype(np.int64) * (len(table.tasks) * len(replicates)) + cell
        _, first = np.unique(keys, return_index=True)
        where = np.full(len(table), -1, dtype=np.int64)
        where[first] = cell[first]
        return cls(len(table.tasks), replicates, where, table.variant, len(table) - len(first))

    def arm(self, table: TrialTable, variant: str, metric: str) -> ArmGrid:
        """The grid of one arm; a variant or metric nobody has gives an empty one."""
        shape = (self.tasks, len(self.replicates))
        values, causes = np.full(shape, np.nan), np.full(shape, UNSCHEDULED, dtype=np.uint8)
        if variant in table.variants and metric in table.metrics:
            rows = np.flatnonzero((self.variant == table.variants.index(variant)) & (self.cell >= 0))
            column = table.metrics[metric]
            values.reshape(-1)[self.cell[rows]] = column.values[rows]
            causes.reshape(-1)[self.cell[rows]] = column.causes[rows]
        return ArmGrid(values, causes)

    def rows(self, table: TrialTable, variant: str) -> NDArray[np.int64]:
        """Row numbers by task and replicate, -1 where nothing was scheduled."""
        found = np.full(self.tasks * len(self.replicates), -1, dtype=np.int64)
        if variant in table.variants:
            rows = np.flatnonzero((self.variant == table.variants.index(variant)) & (self.cell >= 0))
            found[self.cell[rows]] = rows
        return found.reshape(self.tasks, len(self.replicates))
