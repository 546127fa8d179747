"""experiment.yaml as its author wrote it, with every default filled in.

Paths are as authored, names are not looked up and nothing is hashed: that is resolution, and gives `resolved`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from labaudit.records.authored import Authored
from labaudit.records.experiment_runtime import RuntimeConfig
from labaudit.records.fields import (
    Command,
    Count,
    JsonObject,
    Many,
    MetricSource,
    Name,
    NotNegative,
    Number,
    Positive,
    RedactionMode,
    SanitizationProfile,
    Text,
)


def _version_text(value: Any) -> Any:
    # YAML reads an unquoted 0.3 as a number; there is no other version it could mean.
    return "0.3" if isinstance(value, float) and value == 0.3 else value


def _off_is_a_word(value: Any) -> Any:
    # YAML 1.1 reads an unquoted off as false.
    return "off" if value is False else value


class ExperimentConfig(Authored):
    """What the experiment is called."""

    id: Name
    name: Text | None = None
    description: str = Field("", description="none was given")
    tags: Many[Text] = Field((), description="none were given")


class DatasetConfig(Authored):
    """The tasks: a jsonl, json or csv file."""

    path: Text
    format: Literal["jsonl", "json", "csv"] | None = None
    id_field: Text = Field("id", description="the usual name of a task's id")
    limit: Positive | None = None
    task_schema: Text | None = None


class RetriesConfig(Authored):
    """How often a trial that the infrastructure lost is tried again; a graded failure never is."""

    infra: Count = Field(1, description="one lost container should not cost a trial")


class DesignConfig(Authored):
    """Replication, randomisation and strictness."""

    sanitization_profile: SanitizationProfile = Field("hermetic_functional_v2", description="the middle profile")
    replications: Positive = Field(1, description="one trial per task and variant")
    seed: Count = Field(0, description="fixed, so that the schedule can be computed again")
    shuffle_tasks: bool = Field(True, description="order effects should not follow the file")
    randomize_variant_order: bool = Field(True, description="order effects should not follow the variant")
    block_by_task: bool = Field(True, description="variants of one task run close in time")
    fail_on_profile_invariant_violation: bool = Field(False, description="a violation is graded, not fatal")
    retries: RetriesConfig = Field(default_factory=RetriesConfig)


class VariantConfig(Authored):
    """One arm of the experiment: its bindings are handed to the harness."""

    id: Name
    bindings: JsonObject = Field(default_factory=dict, description="no bindings were given")


def _regular_expression(pattern: str) -> re.Pattern[str]:
    try:
        re.compile(pattern.encode())
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from error


class EvaluatorConfig(Authored):
    """A judge that runs after the trial, outside the harness's reach."""

    id: Name
    type: Literal["exact_match", "contains", "regex", "json_equal", "numeric", "command"]
    metric: Text = Field("success", description="the usual primary metric")
    expected: Text | None = None
    answer: Text | None = None
    case_sensitive: bool | None = None
    strip: bool | None = None
    pattern: Text | None = None
    abs_tolerance: NotNegative | None = None
    rel_tolerance: NotNegative | None = None
    command: Command | None = None
    source: Text | None = None
    timeout_seconds: Positive | None = None

    @field_validator("pattern")
    @classmethod
    def _pattern_is_one(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            _regular_expression(pattern)
        return pattern

    @model_validator(mode="after")
    def _type_and_keys_fit(self) -> Self:
        if self.type == "command" and self.command is None:
            raise ValueError("an evaluator of type command needs a command")
        if self.type != "command" and (self.command is not None or self.source is not None):
            raise ValueError("command and source are for evaluators of type command only")
        if self.type != "numeric" and (self.abs_tolerance is not None or self.rel_tolerance is not None):
            raise ValueError("a tolerance is for evaluators of type numeric only")
        return self


class MetricConfig(Authored):
    """A value to analyse: where it comes from and which way is better."""

    name: Text
    type: Literal["binary", "continuous"] = Field("continuous", description="the kind that assumes least")
    direction: Literal["higher", "lower"] = Field("higher", description="more is better unless said otherwise")
    source: MetricSource = Field("harness", description="self-reported unless an evaluator is named")
    worst: Number | None = None
    effect: Literal["risk_diff", "mean_diff", "median_diff", "log_ratio"] | None = None


class IntervalConfig(Authored):
    """How confidence intervals are made."""

    method: Literal["auto", "percentile", "studentized", "tango", "order_statistics"] = Field(
        "auto", description="the method that fits the effect"
    )
    level: Annotated[float, Field(gt=0, lt=1)] = Field(0.95, description="the usual level")
    resamples: Positive = Field(10000, description="enough for two stable digits")


class CorrectionConfig(Authored):
    """How p-values of one family are corrected."""

    primary: Literal["holm", "bh", "none"] = Field("holm", description="controls the family-wise error")
    secondary: Literal["holm", "bh", "none"] = Field("bh", description="controls the false discovery rate")


class AnalysisPlanConfig(Authored):
    """What will be compared, fixed before the first trial."""

    primary: Many[Text] | None = None
    secondary: Many[Text] = Field((), description="none were given")
    missingness: Literal["paired_drop", "treat_as_failure", "paired_impute"] = Field(
        "paired_drop", description="invents no value"
    )
    ci: IntervalConfig = Field(default_factory=IntervalConfig)
    correction: CorrectionConfig = Field(default_factory=CorrectionConfig)
    estimand: Literal["tasks_like_these", "this_task_set"] = Field(
        "tasks_like_these", description="the tasks are a sample of what the agent will meet"
    )
    cluster: Text | None = None


class RedactionRuleConfig(Authored):
    """A pattern that must not be stored as it is."""

    pattern: Text
    mode: RedactionMode = Field("hash", description="keeps equality visible and the text hidden")

    @field_validator("pattern")
    @classmethod
    def _matches_something(cls, pattern: str) -> str:
        if _regular_expression(pattern).match(""):
            raise ValueError("matches the empty text, so it would take out nothing or everything")
        return pattern


class RedactionConfig(Authored):
    """What is removed before anything is stored; secrets always are."""

    rules: Many[RedactionRuleConfig] = Field((), description="only the declared secrets are redacted")


class ProvenanceConfig(Authored):
    """Bills of materials and signatures."""

    sbom: Annotated[Literal["off", "optional", "required"], BeforeValidator(_off_is_a_word)] = Field(
        "optional", description="made where it can be, and said where it cannot"
    )
    sign: bool = Field(True, description="a run is signed unless told otherwise")


class ExecutorConfig(Authored):
    """Which remote workers' evidence counts as one's own."""

    trusted_workers: Many[Text] = Field((), description="no remote worker is trusted")


class Experiment(Authored):
    """The whole of experiment.yaml."""

    version: Annotated[Literal["0.3"], BeforeValidator(_version_text)]
    experiment: ExperimentConfig
    dataset: DatasetConfig
    design: DesignConfig = Field(default_factory=DesignConfig)
    baseline: VariantConfig
    variant_plan: Many[VariantConfig] = Field((), description="only the baseline runs")
    runtime: RuntimeConfig
    evaluators: Many[EvaluatorConfig] = Field((), description="the harness's own outcome is all there is")
    metrics: Many[MetricConfig] | None = None
    analysis_plan: AnalysisPlanConfig = Field(default_factory=AnalysisPlanConfig)
    redaction: RedactionConfig = Field(default_factory=RedactionConfig)
    provenance: ProvenanceConfig = Field(default_factory=ProvenanceConfig)
    executor: ExecutorConfig = Field(default_factory=ExecutorConfig)

    @property
    def variants(self) -> tuple[VariantConfig, ...]:
        """All arms, baseline first."""
        return (self.baseline, *self.variant_plan)
