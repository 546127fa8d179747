"""resolved_experiment.json: the experiment that a run is about, with nothing left to look up."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from labaudit.records.base import Record
from labaudit.records.fields import (
    ArtifactRef,
    Command,
    Count,
    DigestText,
    Hex64,
    JsonObject,
    Many,
    MetricSource,
    Name,
    NotNegative,
    Number,
    Positive,
    SanitizationProfile,
    Text,
)
from labaudit.records.parts import RedactionRule
from labaudit.records.resolved_runtime import ResolvedRuntime

Correction = Literal["holm", "bh", "none"]


class ResolvedName(Record):
    """What the experiment is called."""

    id: Name
    name: Text
    description: str
    tags: Many[Text]


class ResolvedDataset(Record):
    """The tasks by digest; `path` is relative, as authored, and `count` is after the limit."""

    path: Text
    format: Literal["jsonl", "json", "csv"]
    sha256: Hex64
    size: Count
    id_field: Text
    limit: Positive | None
    count: Count
    task_schema: Text | None = None
    artifact_ref: ArtifactRef


class ResolvedRetries(Record):
    """How often a trial that the infrastructure lost is tried again."""

    infra: Count


class ResolvedDesign(Record):
    """Replication, randomisation and strictness."""

    sanitization_profile: SanitizationProfile
    replications: Positive
    seed: Count
    shuffle_tasks: bool
    randomize_variant_order: bool
    block_by_task: bool
    fail_on_profile_invariant_violation: bool
    retries: ResolvedRetries


class Variant(Record):
    """One arm of the experiment; also the content of variants/<id>.json."""

    id: Name
    bindings: JsonObject


class ResolvedEvaluator(Record):
    """A judge that runs after the trial."""

    id: Name
    type: Literal["exact_match", "contains", "regex", "json_equal", "numeric", "command"]
    metric: Text
    expected: Text | None = None
    answer: Text | None = None
    case_sensitive: bool | None = None
    strip: bool | None = None
    pattern: Text | None = None
    abs_tolerance: NotNegative | None = None
    rel_tolerance: NotNegative | None = None
    command: Command | None = None
    source: Text | None = None
    source_digest: DigestText | None = None
    timeout_seconds: Positive | None = None


class ResolvedMetric(Record):
    """A value to analyse."""

    name: Text
    type: Literal["binary", "continuous"]
    direction: Literal["higher", "lower"]
    source: MetricSource
    worst: Number | None = None
    effect: Literal["risk_diff", "mean_diff", "median_diff", "log_ratio"] | None = None


class ResolvedInterval(Record):
    """How confidence intervals are made."""

    method: Literal["auto", "percentile", "studentized", "tango", "order_statistics"]
    level: Annotated[Number, Field(gt=0, lt=1)]
    resamples: Positive


class ResolvedCorrection(Record):
    """How p-values of one family are corrected."""

    primary: Correction
    secondary: Correction


class AnalysisPlan(Record):
    """What will be compared, fixed before the first trial."""

    primary: Many[Text]
    secondary: Many[Text]
    missingness: Literal["paired_drop", "treat_as_failure", "paired_impute"]
    ci: ResolvedInterval
    correction: ResolvedCorrection
    estimand: Literal["tasks_like_these", "this_task_set"]
    cluster: Text | None


class ResolvedRedaction(Record):
    """What is removed before anything is stored."""

    rules: Many[RedactionRule]


class ResolvedProvenance(Record):
    """Bills of materials and signatures."""

    sbom: Literal["off", "optional", "required"]
    sign: bool


class ResolvedExecutor(Record):
    """Which remote workers' evidence counts as one's own."""

    trusted_workers: Many[Text]


class ScheduleSummary(Record):
    """How many trials the schedule has, and the seed that orders them."""

    trials: Count
    seed: Count


class DefaultFilledIn(Record):
    """A value that the author did not write, and why it is what it is."""

    path: Text
    value: Any
    reason: Text


class ResolvedExperiment(Record):
    """The subject of a run; the digest of its canonical bytes is the resolved digest."""

    schema_version: Literal["resolved_experiment_v0_3"] = "resolved_experiment_v0_3"
    version: Literal["0.3"] = "0.3"
    experiment: ResolvedName
    dataset: ResolvedDataset
    design: ResolvedDesign
    baseline: Variant
    variants: Annotated[Many[Variant], Field(min_length=1)]
    variant_plan: Many[Name]
    runtime: ResolvedRuntime
    evaluators: Many[ResolvedEvaluator]
    metrics: Many[ResolvedMetric]
    analysis_plan: AnalysisPlan
    redaction: ResolvedRedaction
    provenance: ResolvedProvenance
    executor: ResolvedExecutor
    schedule: ScheduleSummary
    defaults: Many[DefaultFilledIn]
