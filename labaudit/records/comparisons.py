"""analysis/comparisons.json: every planned comparison with its effect, interval, p-value and caveats.

Where a number cannot be given, null stands with the code and the sentence of the reason beside it; there is no NaN.
"""

from __future__ import annotations

from typing import Literal

from labaudit.records.base import Record
from labaudit.records.fields import Count, DigestText, Many, Number, Positive, Text

Role = Literal["primary", "secondary", "unplanned"]
Effect = Literal["risk_diff", "mean_diff", "median_diff", "log_ratio"]
Estimand = Literal["tasks_like_these", "this_task_set"]
Policy = Literal["paired_drop", "treat_as_failure", "paired_impute"]
Design = Literal["paired", "unpaired"]


class Coded(Record):
    """A reason or a warning: a stable code and the sentence for a reader."""

    code: Text
    sentence: Text


class Interval(Record):
    """A confidence interval; `achieved_level` where the method can only reach certain levels."""

    method: Text | None
    level: Number
    low: Number | None
    high: Number | None
    achieved_level: Number | None
    reason: Coded | None


class PValue(Record):
    """A p-value, raw and corrected within its family; the family's size is fixed by the plan."""

    value: Number | None
    method: Text | None
    adjusted: Number | None
    correction: Literal["holm", "bh", "none"] | None
    family: Literal["primary", "secondary"] | None
    family_size: Count | None
    reason: Coded | None


class EstimandResult(Record):
    """Effect, error, interval and raw p under one reading of what the tasks stand for."""

    estimate: Number | None
    se: Number | None
    interval: Interval
    p: Number | None
    p_method: Text | None
    reason: Coded | None


class Estimands(Record):
    """Tasks as a sample of tasks like these, and tasks as all there is."""

    tasks_like_these: EstimandResult
    this_task_set: EstimandResult


class PassKRow(Record):
    """pass@k and pass^k for one k; null where a task has fewer valid replicates than k."""

    k: Positive
    pass_at_k: Number | None
    pass_hat_k: Number | None
    n_tasks: Count
    reason: str | None


class MissingByCause(Record):
    """Scheduled trials without a usable value, by cause."""

    missing: Count
    error: Count
    absent: Count
    invalid: Count
    nan: Count


class Arm(Record):
    """One side of a comparison, from its observed values alone."""

    variant_id: Text
    scheduled: Count
    valid: Count
    missing: Count
    missing_by_cause: MissingByCause
    lost: Count
    excluded: Count
    retried: Count
    tasks: Count
    mean: Number | None
    naive_se: Number | None
    clustered_se: Number | None
    pass_k: Many[PassKRow]


class Arms(Record):
    """Both sides."""

    baseline: Arm
    variant: Arm


class Missingness(Record):
    """What the policy did, and whether the arms lose trials at different rates (Fisher)."""

    policy: Policy
    differential_p: Number | None
    dropped_pairs: Count
    dropped_tasks: Count
    imputed_values: Count
    failure_values: Count


class TaskSets(Record):
    """Which tasks were scheduled for which arm."""

    matched: Count
    baseline_only: Count
    variant_only: Count


class Replicates(Record):
    """Fewest and most values behind a task mean."""

    min: Count
    max: Count


class Bounds(Record):
    """The effect if missing trials had gone as badly, or as well, as the metric allows."""

    low: Number | None
    high: Number | None
    reason: Coded | None


class Detectable(Record):
    """The smallest true effect that such an experiment sees with the given power."""

    value: Number | None
    power: Number
    reason: Coded | None


class Ratio(Record):
    """A log ratio as the ratio it stands for."""

    estimate: Number
    low: Number | None
    high: Number | None


class Comparison(Record):
    """One variant against the baseline on one metric."""

    id: Text
    variant: Text
    metric: Text
    role: Role
    type: Literal["binary", "continuous"]
    direction: Literal["higher", "lower"]
    effect: Effect
    source: Text | None
    declared: bool
    self_reported: bool
    status: Literal["estimated", "not_estimable"]
    reason: Coded | None
    design: Design
    tasks: TaskSets
    n_tasks: Count
    n_pairs: Count
    n_units: Count
    replicates: Replicates
    arms: Arms
    estimand: Estimand
    estimate: Number | None
    se: Number | None
    ratio: Ratio | None
    interval: Interval
    percentile_interval: Interval
    p: PValue
    favours: Literal["variant", "baseline", "undecided"] | None
    estimands: Estimands
    minimal_detectable_effect: Detectable
    manski_bounds: Bounds
    missingness: Missingness
    warnings: Many[Coded]


class PlannedAnalysis(Record):
    """The signed plan, repeated where its results stand."""

    primary: Many[Text]
    secondary: Many[Text]
    missingness: Policy
    method: Text
    level: Number
    resamples: Positive
    seed: Count
    correction_primary: Literal["holm", "bh", "none"]
    correction_secondary: Literal["holm", "bh", "none"]
    estimand: Estimand
    cluster: Text | None


class ValuesFrom(Record):
    """How many trials have their values from metrics.json, from the fallback, from nowhere."""

    metrics_json: Count
    trial_output_json: Count
    none: Count


class Comparisons(Record):
    """All comparisons of a run, planned ones first, in the order of the plan."""

    schema_version: Literal["comparisons_v1"] = "comparisons_v1"
    run_id: Text
    resolved_digest: DigestText
    baseline: Text
    variants: Many[Text]
    plan: PlannedAnalysis
    values_from: ValuesFrom
    comparisons: Many[Comparison]
    warnings: Many[Coded]
