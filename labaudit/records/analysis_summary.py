"""analysis/summary.json: what a reader of the run wants to know first, counted and estimated from its trials."""

from __future__ import annotations

from typing import Literal

from labaudit.records.base import Record
from labaudit.records.comparisons import Coded, Design, Effect, Interval, MissingByCause, PassKRow, Role, ValuesFrom
from labaudit.records.fields import Count, DigestText, Hex64, Many, Number, Text
from labaudit.records.inclusion import InclusionTotals


class OutcomeCounts(Record):
    """How trials ended, counted from rows."""

    success: Count
    failure: Count
    missing: Count
    error: Count
    none: Count


class VariantMetric(Record):
    """One metric of one variant on its own: no comparison."""

    metric: Text
    role: Role
    valid: Count
    missing: Count
    missing_by_cause: MissingByCause
    mean: Number | None
    naive_se: Number | None
    clustered_se: Number | None
    pass_k: Many[PassKRow]


class VariantSummary(Record):
    """One arm of the run."""

    variant_id: Text
    baseline: bool
    scheduled: Count
    included: Count
    excluded: Count
    lost: Count
    retried: Count
    outcomes: OutcomeCounts
    metrics: Many[VariantMetric]


class Headline(Record):
    """A primary comparison in one line; comparisons.json has the rest."""

    id: Text
    variant: Text
    metric: Text
    effect: Effect
    design: Design
    status: Literal["estimated", "not_estimable"]
    reason: Coded | None
    estimate: Number | None
    interval: Interval
    p_adjusted: Number | None
    n_tasks: Count
    favours: Literal["variant", "baseline", "undecided"] | None


class TableDigest(Record):
    """The rows behind everything here: how many, and one digest over the digests of all rows in schedule order."""

    rows: Count
    rows_sha256: Hex64


class AnalysisSummary(Record):
    """The whole analysis in short."""

    schema_version: Literal["analysis_summary_v1"] = "analysis_summary_v1"
    run_id: Text
    resolved_digest: DigestText
    experiment_id: Text
    baseline: Text
    tasks: Count
    replications: Count
    totals: InclusionTotals
    values_from: ValuesFrom
    trials_table: TableDigest
    variants: Many[VariantSummary]
    primary: Many[Headline]
    undeclared_metrics: Many[Text]
    comparisons: Count
    suspects: Count
    insufficient_evidence: Count
    exemplars: Count
    warnings: Many[Coded]
