"""Rows that tell of one trial twice to one row each.

Two tellings that agree are one trial: the one with more files behind it is kept. Two that disagree leave the verdict
unknown: it becomes a missing value with cause `invalid`, because picking one of them would be a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from labaudit.importers.results import ForeignResults, ForeignTrial


def merge_duplicates(results: ForeignResults) -> None:
    """Leaves one row per trial in `results`, and says how many there were too many."""
    groups: dict[tuple[str, str, str], list[ForeignTrial]] = {}
    for trial in results.trials:
        groups.setdefault((trial.variant, trial.task_id, trial.original_id), []).append(trial)
    primary = results.metrics[0].name
    same, different = [], []
    kept = []
    for group in groups.values():
        if len(group) == 1:
            kept.append(group[0])
        elif len({(trial.outcome, repr(trial.metrics.get(primary))) for trial in group}) == 1:
            same.append(group[0].original_id)
            kept.append(max(group, key=lambda trial: len(trial.sources)))
        else:
            different.append(group[0].original_id)
            kept.append(_unknown(group, primary))
    results.trials = kept
    if same:
        said = f"{len(same)} trial(s) are told twice with the same verdict; each counts once."
        results.note("duplicate_trial", "mismatch", said, count=len(same), examples=tuple(same))
    if different:
        said = f"{len(different)} trial(s) are told twice with different verdicts; their verdict is unknown here."
        results.note("conflicting_trial", "mismatch", said, count=len(different), examples=tuple(different))


def _unknown(group: Sequence[ForeignTrial], primary: str) -> ForeignTrial:
    first = group[0]
    verdicts = " and ".join(sorted({str(trial.metrics.get(primary, trial.outcome)) for trial in group}))
    return replace(
        first,
        outcome="missing",
        metrics={name: value for name, value in first.metrics.items() if name != primary},
        missing={**first.missing, primary: "invalid"},
        error=f"two rows have this id and differ: {verdicts}",
        sources=tuple(dict.fromkeys(name for trial in group for name in trial.sources)),
    )
