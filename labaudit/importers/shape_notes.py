"""Rows to findings about their shape: tasks that one side lacks, trials without a verdict, uneven replicates."""

from __future__ import annotations

from collections import Counter

from labaudit.errors import BadInput
from labaudit.importers.results import ForeignResults, ForeignTrial


def leave_out_nameless(results: ForeignResults) -> None:
    """Rows whose task, variant or metric has no name that can be written down are left out, and counted."""
    named = [trial for trial in results.trials if _has_names(trial)]
    lost = len(results.trials) - len(named)
    if lost:
        said = f"{lost} row(s) have no name for their task, variant or metric; they are left out."
        results.note("row_without_name", "mismatch", said, count=lost)
        results.trials = named
    if not named:
        raise BadInput("no row names its task", hint="there is nothing to import")
    results.metrics = [metric for metric in results.metrics if _is_name(metric.name)] or results.metrics[:1]


def _has_names(trial: ForeignTrial) -> bool:
    names = (trial.task_id, trial.variant, trial.original_id, *trial.metrics, *trial.missing)
    return all(_is_name(name) for name in names)


def _is_name(text: str) -> bool:
    try:
        return bool(text) and bool(text.encode("utf-8"))
    except UnicodeEncodeError:
        return False


def note_task_sets(results: ForeignResults) -> None:
    """Says which variants lack tasks that others have: such arms are not paired."""
    tasks: dict[str, set[str]] = {}
    for trial in results.trials:
        tasks.setdefault(trial.variant, set()).add(trial.task_id)
    every = set().union(*tasks.values())
    for label, own in tasks.items():
        lacking = sorted(every - own)
        if lacking:
            said = f"{label} has no trial of {len(lacking)} of the {len(every)} tasks."
            results.note("task_missing", "mismatch", said, where=label, count=len(lacking), examples=tuple(lacking))


def note_verdicts(results: ForeignResults) -> None:
    """Counts trials without a verdict, unless the format's own reader told it better."""
    silent = [trial for trial in results.trials if trial.outcome in ("missing", "error")]
    if silent and not any(finding.code == "no_verdict" for finding in results.findings):
        said = f"{len(silent)} of {len(results.trials)} trials have no verdict; they are missing, not failures."
        examples = tuple(trial.original_id for trial in silent[:5])
        results.note("no_verdict", "caution", said, count=len(silent), examples=examples)


def note_replicates(results: ForeignResults) -> None:
    """Says how many trials the cells of variant and task have, where that differs."""
    cells = Counter((trial.variant, trial.task_id) for trial in results.trials)
    sizes = Counter(cells.values())
    if len(sizes) > 1:
        told = ", ".join(f"{count} with {size}" for size, count in sorted(sizes.items()))
        said = f"Tasks have uneven replicates (cells of variant and task: {told})."
        results.note("uneven_replicates", "caution", said, count=len(sizes))


def leave_out_silent_metrics(results: ForeignResults) -> None:
    """Metrics that no trial tells are not analysed; the first one stays, since it is what the results are about."""
    told = {name for trial in results.trials for name in trial.metrics}
    silent = [metric.name for metric in results.metrics[1:] if metric.name not in told]
    if silent:
        said = f"No trial tells a value of {', '.join(silent)}."
        results.note("metric_never_told", "note", said, count=len(silent))
        results.metrics = [metric for metric in results.metrics if metric.name not in silent]
