"""Grids to `paired_diffs`: one row per task, replicate, variant and metric, as JSON lines and as Parquet columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.columns import coded_texts, numbers, parquet_bytes, whole_numbers
from labaudit.analysis.effects.draft import Draft
from labaudit.analysis.effects.families import Compared
from labaudit.analysis.trials.canonical_text import number_text, text
from labaudit.analysis.trials.table import CAUSES, UNSCHEDULED

STATUSES = ("paired", "dropped", "imputed", "counted_as_failure", "unpaired", "not_compared")
_PAIRED, _DROPPED, _IMPUTED, _FAILURE, _UNPAIRED, _NOT_COMPARED = range(6)
_CAUSE_NAMES = (*CAUSES, "unscheduled")
_BLOCK = 8192


def paired_lines(compared: Compared, variant: str | None = None) -> Iterator[bytes]:
    """Canonical JSON lines in blocks, keyed (task_id, repl_idx, variant, metric), in the order of the comparisons.

    `variant` limits them to one.
    """
    trial = [text(trial_id) for trial_id in compared.table.trial_ids]
    task = [text(task_id) for task_id in compared.table.tasks]
    causes = ["null", *(text(name) for name in _CAUSE_NAMES[1:])]
    status_names = [text(name) for name in STATUSES]
    replicates = [str(value) for value in compared.index.replicates.tolist()]
    for draft in (one for one in compared.drafts if variant in (None, one.variant_id)):
        tail = f',"variant":{text(draft.variant_id)},"variant_cause":'
        metric = f',"metric":{text(draft.metric.name)},"repl_idx":'
        rows_v, rows_b = compared.rows(draft.variant_id), compared.rows(compared.settings.baseline)
        status = _status(draft, compared.settings.missingness)
        lines = []
        for i, j in zip(*(part.tolist() for part in np.nonzero((rows_v >= 0) | (rows_b >= 0))), strict=True):
            v, b = float(draft.variant.values[i, j]), float(draft.baseline.values[i, j])
            row_v, row_b = int(rows_v[i, j]), int(rows_b[i, j])
            lines.append(
                f'{{"baseline_cause":{causes[draft.baseline.causes[i, j]]},'
                f'"baseline_trial":{trial[row_b] if row_b >= 0 else "null"},"baseline_value":{_number(b)},'
                f'"difference":{_number(v - b)}{metric}{replicates[j]},"status":{status_names[status[i, j]]},'
                f'"task_id":{task[i]}{tail}{causes[draft.variant.causes[i, j]]},'
                f'"variant_trial":{trial[row_v] if row_v >= 0 else "null"},"variant_value":{_number(v)}}}\n'
            )
            if len(lines) == _BLOCK:
                yield "".join(lines).encode()
                lines = []
        yield "".join(lines).encode()


def _number(value: float) -> str:
    return "null" if value != value else number_text(value)


def paired_parquet(compared: Compared) -> bytes:
    """The same rows as a Parquet file."""
    parts = [_codes(draft, place, compared) for place, draft in enumerate(compared.drafts)]
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else list(_NO_CODES)
    draft, task, column, row_b, row_v, value_b, value_v, status, cause_b, cause_v = joined
    variants, metrics = compared.settings.variants, [metric.name for metric in compared.settings.metrics]
    variant_of = np.array([variants.index(one.variant_id) for one in compared.drafts], dtype=np.int32)
    metric_of = np.array([metrics.index(one.metric.name) for one in compared.drafts], dtype=np.int32)
    ids, pair = compared.table.trial_ids, draft.astype(np.int64)
    return parquet_bytes(
        {
            "task_id": coded_texts(task, compared.table.tasks),
            "repl_idx": whole_numbers(compared.index.replicates[column.astype(np.int64)]),
            "variant": coded_texts(variant_of[pair], variants),
            "metric": coded_texts(metric_of[pair], metrics),
            "baseline_trial": coded_texts(np.maximum(row_b, 0), ids, row_b < 0),
            "variant_trial": coded_texts(np.maximum(row_v, 0), ids, row_v < 0),
            "baseline_value": numbers(value_b),
            "variant_value": numbers(value_v),
            "difference": numbers(value_v - value_b),
            "status": coded_texts(status, STATUSES),
            "baseline_cause": coded_texts(cause_b, _CAUSE_NAMES, np.equal(cause_b, 0)),
            "variant_cause": coded_texts(cause_v, _CAUSE_NAMES, np.equal(cause_v, 0)),
        }
    )


_NO_CODES: tuple[NDArray[Any], ...] = tuple(np.zeros(0) for _ in range(10))


def _codes(draft: Draft, place: int, compared: Compared) -> tuple[NDArray[Any], ...]:
    """One draft's rows as arrays, in the order that `paired_parquet` takes them apart."""
    rows_v, rows_b = compared.rows(draft.variant_id), compared.rows(compared.settings.baseline)
    i, j = np.nonzero((rows_v >= 0) | (rows_b >= 0))
    return (
        np.full(len(i), place),
        i,
        j,
        rows_b[i, j],
        rows_v[i, j],
        draft.baseline.values[i, j],
        draft.variant.values[i, j],
        _status(draft, compared.settings.missingness)[i, j],
        draft.baseline.causes[i, j],
        draft.variant.causes[i, j],
    )


def _status(draft: Draft, policy: str) -> NDArray[np.int32]:
    """What became of each cell under the policy."""
    both = draft.variant.present & draft.baseline.present
    if draft.refusal is not None:
        return np.full(both.shape, _NOT_COMPARED, dtype=np.int32)
    if not draft.paired:
        return np.full(both.shape, _UNPAIRED, dtype=np.int32)
    if policy == "paired_drop":
        return np.where(both, _PAIRED, _DROPPED).astype(np.int32)
    # A replicate that only one arm was scheduled for counts in its task's mean, without a partner.
    alone = np.equal(draft.variant.causes, UNSCHEDULED) | np.equal(draft.baseline.causes, UNSCHEDULED)
    filled = _FAILURE if policy == "treat_as_failure" else _IMPUTED
    return np.where(both, _PAIRED, np.where(alone, _UNPAIRED, filled)).astype(np.int32)
