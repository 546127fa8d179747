"""Rows and columns to `trials.parquet`, and back to columns.

The file is a derived index: every row carries the digest of its trial record and of the row itself, and anyone can
rebuild it from the trial files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from labaudit.analysis.columns import Column, StoredColumns, coded_texts, numbers, parquet_bytes, texts, whole_numbers
from labaudit.analysis.trials.canonical_text import scalar_text, text
from labaudit.analysis.trials.rows import TrialRow
from labaudit.analysis.trials.table import CAUSES, STATUSES, MetricColumn, TrialTable
from labaudit.errors import BadInput

METRIC, MISSING = "metric.", "missing."
_CODED = ("variant_id", "task_id", "status")
_PLAIN = ("trial_id", "index", "repl_idx", "attempts")


def trials_parquet(rows: Sequence[TrialRow], table: TrialTable) -> bytes:
    """All rows, with a pair of columns per declared metric and the rest of what harnesses reported as JSON text."""
    columns: dict[str, Column] = {
        "index": whole_numbers(table.index),
        "trial_id": texts(table.trial_ids),
        "variant_id": coded_texts(table.variant, table.variants),
        "task_id": coded_texts(table.task, table.tasks),
        "repl_idx": whole_numbers(table.repl),
        "status": coded_texts(table.status, STATUSES),
        "rule": texts(row.rule for row in rows),
        "outcome": texts(row.outcome for row in rows),
        "attempts": whole_numbers(table.attempts),
        "started_at": texts(row.started_at for row in rows),
        "ended_at": texts(row.ended_at for row in rows),
        "evidence_origin": texts(row.evidence_origin for row in rows),
        "worker": texts(row.worker for row in rows),
        "values_from": texts(row.values_from for row in rows),
        "problem": texts(row.problem for row in rows),
        "record_sha256": texts(row.record_sha256 for row in rows),
        "row_sha256": texts(row.sha256() for row in rows),
    }
    for name, column in table.metrics.items():
        columns[METRIC + name] = numbers(column.values)
        columns[MISSING + name] = coded_texts(column.causes, CAUSES, column.causes == 0)
    columns["other_metrics"] = texts(_others(row, table) for row in rows)
    return parquet_bytes(columns)


def read_trials_parquet(path: Path, names: Sequence[str] | None = None) -> TrialTable:
    """The columns of a stored `trials.parquet`; `names` limits the metrics that are read."""
    there = StoredColumns.names(path)
    metrics = [name.removeprefix(METRIC) for name in there if name.startswith(METRIC)]
    if names is not None:
        metrics = [name for name in metrics if name in names]
    causes = [MISSING + name for name in metrics]
    wanted = [*_PLAIN, *_CODED, *(METRIC + name for name in metrics), *causes]
    stored = StoredColumns(path, wanted, [*_CODED, *causes])
    variants, variant = stored.codes("variant_id")
    tasks, task = stored.codes("task_id")
    statuses, status = stored.codes("status")
    return TrialTable(
        trial_ids=stored.texts("trial_id"),
        index=stored.whole_numbers("index"),
        variants=variants,
        variant=variant,
        tasks=tasks,
        task=task,
        repl=stored.whole_numbers("repl_idx"),
        status=np.array([_place(name, STATUSES, path) for name in statuses], dtype=np.uint8)[status],
        attempts=stored.whole_numbers("attempts"),
        metrics={name: _metric(stored, name) for name in metrics},
    )


def _metric(stored: StoredColumns, name: str) -> MetricColumn:
    causes, codes = stored.codes(MISSING + name)
    # The last place is where code -1 (null, a value is there) points.
    mapped = np.array([*(_place(cause, CAUSES, stored.path) for cause in causes), 0], dtype=np.uint8)
    return MetricColumn(stored.numbers(METRIC + name), mapped[codes])


def _place(name: str, known: Sequence[str], path: Path) -> int:
    if name not in known:
        raise BadInput(f"has the unknown word {name!r}; known: {', '.join(known)}", where=str(path))
    return known.index(name)


def _others(row: TrialRow, table: TrialTable) -> str | None:
    """What the trial reported beyond the declared metrics, as canonical JSON."""
    names = sorted((n for n in row.metrics if n not in table.metrics), key=lambda n: n.encode("utf-16-be"))
    if not names:
        return None
    return "{" + ",".join(f"{text(name)}:{scalar_text(row.metrics[name])}" for name in names) + "}"
