"""A resolved experiment to the order in which its trials run, drawn from the seed alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from labaudit.core.ids import trial_id
from labaudit.records.resolved import ResolvedExperiment


@dataclass(frozen=True)
class PlannedTrial:
    """One line of `schedule.jsonl`."""

    index: int
    trial_id: str
    variant_id: str
    task_id: str
    repl_idx: int

    def as_json(self) -> dict[str, object]:
        """The line's content."""
        return {
            "index": self.index,
            "trial_id": self.trial_id,
            "variant_id": self.variant_id,
            "task_id": self.task_id,
            "repl_idx": self.repl_idx,
        }

    @classmethod
    def from_json(cls, value: dict[str, object]) -> PlannedTrial:
        """A line read back."""
        return cls(
            index=int(str(value["index"])),
            trial_id=str(value["trial_id"]),
            variant_id=str(value["variant_id"]),
            task_id=str(value["task_id"]),
            repl_idx=int(str(value["repl_idx"])),
        )


class TrialPlanner:
    """Plans the trials of one resolved experiment."""

    @staticmethod
    def plan(resolved: ResolvedExperiment, resolved_digest: str, task_ids: Sequence[str]) -> list[PlannedTrial]:
        """Every task x variant x replicate once, ordered as the design asks."""
        design = resolved.design
        rng = random.Random(design.seed)  # noqa: S311 - a reproducible order, no secret
        variants = [variant.id for variant in resolved.variants]
        order = _blocks(list(task_ids), variants, design.replications, design.block_by_task, design.shuffle_tasks, rng)
        if design.randomize_variant_order:
            order = _shuffle_variants(order, design.block_by_task, rng)
        return [
            PlannedTrial(index, trial_id(resolved_digest, variant, task, repl), variant, task, repl)
            for index, (task, repl, variant) in enumerate(order)
        ]


Cell = tuple[str, int, str]


def _blocks(
    tasks: list[str], variants: list[str], replications: int, block_by_task: bool, shuffle: bool, rng: random.Random
) -> list[Cell]:
    if block_by_task:
        # A block holds all variants of one task and replicate, so that drift in time hits them alike.
        if shuffle:
            rng.shuffle(tasks)
        return [(task, repl, variant) for task in tasks for repl in range(replications) for variant in variants]
    cells: list[Cell] = []
    for repl in range(replications):
        if shuffle:
            rng.shuffle(tasks)
        cells.extend((task, repl, variant) for variant in variants for task in tasks)
    return cells


def _shuffle_variants(cells: list[Cell], blocked: bool, rng: random.Random) -> list[Cell]:
    """Shuffles the variants within each block; without blocks, all cells of a replicate among each other."""
    groups: dict[tuple[str, int] | int, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell[:2] if blocked else cell[1], []).append(cell)
    for group in groups.values():
        rng.shuffle(group)
    return [cell for group in groups.values() for cell in group]
