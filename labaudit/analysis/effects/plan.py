"""A resolved experiment to the analysis it promised: metrics with their roles, variants, families, methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from labaudit.analysis.statistics.normal import check_level
from labaudit.analysis.statistics.resample_counts import Resampler
from labaudit.records.resolved import ResolvedExperiment, ResolvedMetric

Role = Literal["primary", "secondary", "unplanned"]
Effect = Literal["risk_diff", "mean_diff", "median_diff", "log_ratio"]


@dataclass(frozen=True)
class MetricPlan:
    """One metric as the plan wants it analysed."""

    name: str
    type: Literal["binary", "continuous"]
    direction: Literal["higher", "lower"]
    role: Role
    effect: Effect
    source: str | None
    worst: float | None
    declared: bool = True

    @property
    def failure_value(self) -> float | None:
        """What `treat_as_failure` puts in place of a missing value; None when nobody declared one."""
        if self.worst is not None:
            return self.worst
        if self.type == "binary":
            return 0.0 if self.direction == "higher" else 1.0
        return None

    @property
    def self_reported(self) -> bool:
        """The harness says this of itself."""
        return self.source in (None, "harness")


@dataclass(frozen=True)
class AnalysisSettings:
    """Everything that an analysis was promised to do; `leading` are the metrics that exemplars and suspects follow."""

    baseline: str
    variants: tuple[str, ...]
    metrics: tuple[MetricPlan, ...]
    missingness: Literal["paired_drop", "treat_as_failure", "paired_impute"]
    method: Literal["auto", "percentile", "studentized", "tango", "order_statistics"]
    level: float
    resamples: int
    correction: Mapping[str, str]
    estimand: Literal["tasks_like_these", "this_task_set"]
    cluster: str | None
    seed: int
    replications: int
    leading: tuple[str, ...] = ()

    @property
    def resampler(self) -> Resampler:
        """The one source of randomness."""
        return Resampler(self.seed, self.resamples)

    @property
    def metric_types(self) -> dict[str, str]:
        """name -> binary or continuous."""
        return {metric.name: metric.type for metric in self.metrics}

    def family(self, role: str) -> list[tuple[str, str]]:
        """The (variant, metric) pairs that one correction is over: fixed by the plan, whatever could be computed."""
        return [(variant, m.name) for variant in self.variants for m in self.metrics if m.role == role]


def settings_of(resolved: ResolvedExperiment) -> AnalysisSettings:
    """The plan in the analysis's own terms; a planned metric that nobody declared is kept and will be all missing."""
    plan = resolved.analysis_plan
    declared = {metric.name: metric for metric in resolved.metrics}
    roles: dict[str, Role] = dict.fromkeys(declared, "unplanned")
    roles.update(dict.fromkeys(plan.secondary, "secondary"))
    roles.update(dict.fromkeys(plan.primary, "primary"))
    others = [variant.id for variant in resolved.variants if variant.id != resolved.baseline.id]
    return AnalysisSettings(
        baseline=resolved.baseline.id,
        variants=tuple(dict.fromkeys([*resolved.variant_plan, *others])),
        metrics=tuple(_metric_plan(name, declared.get(name), role) for name, role in roles.items()),
        missingness=plan.missingness,
        method=plan.ci.method,
        level=check_level(float(plan.ci.level)),
        resamples=plan.ci.resamples,
        correction={"primary": plan.correction.primary, "secondary": plan.correction.secondary},
        estimand=plan.estimand,
        cluster=plan.cluster,
        seed=resolved.design.seed,
        replications=resolved.design.replications,
        leading=tuple(plan.primary),
    )


def off_plan_settings(settings: AnalysisSettings, baseline: str, variant: str) -> AnalysisSettings:
    """The same methods for two arms that the plan does not compare: all metrics count as not planned."""
    metrics = tuple(replace(metric, role="unplanned") for metric in settings.metrics)
    return replace(settings, baseline=baseline, variants=(variant,), metrics=metrics)


def _metric_plan(name: str, metric: ResolvedMetric | None, role: Role) -> MetricPlan:
    if metric is None:
        return MetricPlan(name, "continuous", "higher", role, "mean_diff", None, None, declared=False)
    default: Effect = "risk_diff" if metric.type == "binary" else "mean_diff"
    worst = None if metric.worst is None else float(metric.worst)
    return MetricPlan(name, metric.type, metric.direction, role, metric.effect or default, metric.source, worst)
