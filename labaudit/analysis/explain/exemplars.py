"""Task differences to the tasks worth reading first: worst, best and most uncertain for each variant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from labaudit.analysis.effects.draft import Draft
from labaudit.analysis.effects.families import Compared
from labaudit.core.digest import sha256_hex

PER_KIND = 5


def find_exemplars(compared: Compared) -> dict[str, Any]:
    """The content of `exemplars.json`: per variant and primary metric up to five tasks of each kind."""
    groups = [_group(draft, compared) for draft in compared.drafts if draft.metric.name in compared.settings.leading]
    return {"schema_version": "exemplars_v1", "per_kind": PER_KIND, "groups": groups}


def _group(draft: Draft, compared: Compared) -> dict[str, object]:
    head: dict[str, object] = {"variant": draft.variant_id, "metric": draft.metric.name}
    prepared = draft.prepared
    if prepared is None:
        reason = draft.refusal.sentence if draft.refusal else "The arms ran different tasks."
        return {**head, "status": "insufficient_evidence", "reason": reason, "exemplars": []}
    sign = 1.0 if draft.metric.direction == "higher" else -1.0
    gain = sign * prepared.differences.difference
    spread = _replicate_spread(draft)
    tasks = [compared.table.tasks[i] for i in prepared.differences.tasks]
    ties = [sha256_hex(task.encode()) for task in tasks]
    places = range(len(tasks))
    worst = [i for i in sorted(places, key=lambda i: (gain[i], ties[i])) if gain[i] < 0]
    best = [i for i in sorted(places, key=lambda i: (-gain[i], ties[i])) if gain[i] > 0]
    unsure = [] if spread is None else [i for i in sorted(places, key=lambda i: (-spread[i], ties[i])) if spread[i] > 0]
    chosen = {"worst": worst, "best": best, "uncertain": unsure}
    exemplars = [
        _exemplar(kind, rank, place, draft, compared, tasks[place], spread)
        for kind, ranked in chosen.items()
        for rank, place in enumerate(ranked[:PER_KIND], start=1)
    ]
    uncertain = "replicates" if spread is not None else "insufficient_evidence: one replicate shows no uncertainty"
    return {**head, "status": "found", "reason": None, "uncertainty_from": uncertain, "exemplars": exemplars}


def _exemplar(
    kind: str, rank: int, place: int, draft: Draft, compared: Compared, task: str, spread: np.ndarray | None
) -> dict[str, object]:
    assert draft.prepared is not None
    differences = draft.prepared.differences
    return {
        "kind": kind,
        "rank": rank,
        "task_id": task,
        "difference": float(differences.difference[place]),
        "baseline_mean": float(differences.baseline_mean[place]),
        "variant_mean": float(differences.variant_mean[place]),
        "replicate_se": None if spread is None else float(spread[place]),
        "pairs": list(_pairs(int(differences.tasks[place]), draft, compared)),
    }


def _pairs(task: int, draft: Draft, compared: Compared) -> Iterator[dict[str, object]]:
    ids = compared.table.trial_ids
    variant = compared.rows(draft.variant_id)[task]
    baseline = compared.rows(compared.settings.baseline)[task]
    for column, repl in enumerate(compared.index.replicates.tolist()):
        if variant[column] >= 0 and baseline[column] >= 0:
            yield {
                "repl_idx": repl,
                "baseline_trial": ids[int(baseline[column])],
                "variant_trial": ids[int(variant[column])],
            }


def _replicate_spread(draft: Draft) -> np.ndarray | None:
    """Standard error of each task's difference from its replicates; None when no task has two in both arms."""
    assert draft.cells is not None
    total = np.zeros(len(draft.cells.tasks))
    known = np.ones(len(draft.cells.tasks), dtype=bool)
    for cells in (draft.cells.variant, draft.cells.baseline):
        counts = np.count_nonzero(~np.isnan(cells), axis=1)
        means = np.where(np.isnan(cells), 0.0, cells).sum(axis=1) / np.maximum(counts, 1)
        squares = np.where(np.isnan(cells), 0.0, (cells - means[:, None]) ** 2).sum(axis=1)
        total += squares / np.maximum(counts - 1, 1) / np.maximum(counts, 1)
        known &= counts >= 2
    return np.where(known, np.sqrt(total), 0.0) if known.any() else None
