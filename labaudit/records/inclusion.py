"""inclusion.json: one row per scheduled trial, saying whether it counts and by which rule."""

from __future__ import annotations

from typing import Literal

from labaudit.records.base import Record
from labaudit.records.fields import Count, Many, Outcome, Text


class InclusionRow(Record):
    """What became of one scheduled trial."""

    index: Count
    trial_id: Text
    variant_id: Text
    task_id: Text
    repl_idx: Count
    status: Literal["included", "excluded", "lost"]
    rule: str
    reason: str
    outcome: Outcome | None
    attempts: Count


class InclusionTotals(Record):
    """Counted from the rows."""

    scheduled: Count
    included: Count
    excluded: Count
    lost: Count


class Inclusion(Record):
    """All scheduled trials of a run."""

    schema_version: Literal["inclusion_v1"] = "inclusion_v1"
    run_id: Text
    rows: Many[InclusionRow]
    totals: InclusionTotals
