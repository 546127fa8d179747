"""The five names that place a trial in a run; every file of a trial carries them."""

from __future__ import annotations

from labaudit.records.base import Record
from labaudit.records.fields import Count, Text


class Ids(Record):
    """Which run, trial, variant, task and replicate a document belongs to."""

    run_id: Text
    trial_id: Text
    variant_id: Text
    task_id: Text
    repl_idx: Count
