"""A line of analysis/paired_diffs.jsonl: both values of one task, replicate, variant and metric."""

from __future__ import annotations

from typing import Literal

from labaudit.records.base import Record
from labaudit.records.fields import Count, Number, Text

Cause = Literal["missing", "error", "absent", "invalid", "nan", "unscheduled"]


class PairedDiff(Record):
    """Values are null where there is none, and the cause beside them says why; `status` is what the policy did."""

    task_id: Text
    repl_idx: Count
    variant: Text
    metric: Text
    baseline_trial: Text | None
    variant_trial: Text | None
    baseline_value: Number | None
    variant_value: Number | None
    difference: Number | None
    baseline_cause: Cause | None
    variant_cause: Cause | None
    status: Literal["paired", "dropped", "imputed", "counted_as_failure", "unpaired", "not_compared"]
