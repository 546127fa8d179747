"""analysis/exemplars.json: the tasks to read first, for each variant and primary metric."""

from __future__ import annotations

from typing import Literal

from labaudit.records.base import Record
from labaudit.records.fields import Count, Many, Number, Positive, Text


class ExemplarPair(Record):
    """The two trials of one replicate."""

    repl_idx: Count
    baseline_trial: Text
    variant_trial: Text


class Exemplar(Record):
    """One task: how it went in both arms, and its trials."""

    kind: Literal["worst", "best", "uncertain"]
    rank: Positive
    task_id: Text
    difference: Number
    baseline_mean: Number
    variant_mean: Number
    replicate_se: Number | None
    pairs: Many[ExemplarPair]


class ExemplarGroup(Record):
    """The tasks of one variant and metric, or the sentence why none can be named."""

    variant: Text
    metric: Text
    status: Literal["found", "insufficient_evidence"]
    reason: Text | None
    uncertainty_from: Text | None = None
    exemplars: Many[Exemplar]


class Exemplars(Record):
    """All groups, in the order of the comparisons."""

    schema_version: Literal["exemplars_v1"] = "exemplars_v1"
    per_kind: Positive
    groups: Many[ExemplarGroup]
