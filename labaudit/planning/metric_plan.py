"""The authored metrics and analysis plan to resolved ones: what is left open follows from the evaluators."""

from __future__ import annotations

from collections.abc import Sequence

from labaudit.errors import BadInput
from labaudit.planning.yaml_source import Located, Path_
from labaudit.records.authored import FilledDefault
from labaudit.records.experiment import EvaluatorConfig, Experiment
from labaudit.records.resolved import (
    AnalysisPlan,
    ResolvedCorrection,
    ResolvedInterval,
    ResolvedMetric,
)

# The framework's own measurements, which a metric may name with `source: framework`.
FRAMEWORK_METRICS = ("duration_seconds", "turn_count", "steps", "tool_calls", "tokens_in", "tokens_out", "exit_code")


def resolve_metrics(authored: Experiment, located: Located) -> tuple[tuple[ResolvedMetric, ...], list[FilledDefault]]:
    """The metrics, each from a source that exists; without any, one per evaluator, else the harness's own word."""
    evaluators = {item.id: item for item in authored.evaluators}
    if authored.metrics is None:
        metrics = _from_evaluators(authored.evaluators)
        reason = "one metric per evaluator" if evaluators else "no evaluator: the harness's own outcome, self-reported"
        return metrics, [FilledDefault("metrics", [item.to_json() for item in metrics], reason)]
    resolved = []
    seen: set[str] = set()
    for index, item in enumerate(authored.metrics):
        path: Path_ = ("metrics", index)
        if item.name in seen:
            raise BadInput(f"metric {item.name!r} stands twice", where=located.where(path))
        seen.add(item.name)
        _check_source(item.name, item.source, evaluators, located.where((*path, "source")))
        if item.type == "continuous" and item.effect == "risk_diff":
            raise BadInput("risk_diff is for binary metrics", where=located.where((*path, "effect")))
        resolved.append(
            ResolvedMetric(
                name=item.name,
                type=item.type,
                direction=item.direction,
                source=item.source,
                worst=item.worst,
                effect=item.effect,
            )
        )
    if not resolved:
        raise BadInput("metrics is empty", where=located.where(("metrics",)), hint="leave it out for the default")
    return tuple(resolved), []


def resolve_plan(
    authored: Experiment, metrics: Sequence[ResolvedMetric], located: Located
) -> tuple[AnalysisPlan, list[FilledDefault]]:
    """The analysis plan over declared metrics only."""
    plan = authored.analysis_plan
    names = [metric.name for metric in metrics]
    defaults: list[FilledDefault] = []
    primary = plan.primary
    if primary is None:
        primary = ("success",) if "success" in names else (names[0],)
        defaults.append(FilledDefault("analysis_plan.primary", list(primary), "the metric success, else the first one"))
    _check_names(primary, plan.secondary, names, located)
    if plan.missingness == "treat_as_failure":
        without = [item.name for item in metrics if _needs_worst(item, (*primary, *plan.secondary))]
        if without:
            hint = "give each a `worst` value, or choose paired_drop"
            where = located.where(("analysis_plan", "missingness"))
            raise BadInput(f"treat_as_failure has no worst value for {', '.join(without)}", where=where, hint=hint)
    return (
        AnalysisPlan(
            primary=tuple(primary),
            secondary=plan.secondary,
            missingness=plan.missingness,
            ci=ResolvedInterval(method=plan.ci.method, level=plan.ci.level, resamples=plan.ci.resamples),
            correction=ResolvedCorrection(primary=plan.correction.primary, secondary=plan.correction.secondary),
            estimand=plan.estimand,
            cluster=plan.cluster,
        ),
        defaults,
    )


def _from_evaluators(evaluators: Sequence[EvaluatorConfig]) -> tuple[ResolvedMetric, ...]:
    if not evaluators:
        return (ResolvedMetric(name="success", type="binary", direction="higher", source="harness"),)
    found: dict[str, ResolvedMetric] = {}
    for item in evaluators:
        kind = "continuous" if item.type == "command" else "binary"
        if item.metric == "success":
            kind = "binary"
        found.setdefault(
            item.metric,
            ResolvedMetric(name=item.metric, type=kind, direction="higher", source=f"evaluator:{item.id}"),  # type: ignore[arg-type]
        )
    return tuple(found.values())


def _check_source(name: str, source: str, evaluators: dict[str, EvaluatorConfig], where: str) -> None:
    if source == "imported":
        raise BadInput("source imported is for imported runs only", where=where)
    if source == "framework" and name not in FRAMEWORK_METRICS:
        known = ", ".join(FRAMEWORK_METRICS)
        raise BadInput(f"the framework does not measure {name!r}", where=where, hint=f"it measures {known}")
    if source.startswith("evaluator:"):
        wanted = source.removeprefix("evaluator:")
        if wanted not in evaluators:
            known = ", ".join(evaluators) or "none is declared"
            raise BadInput(f"there is no evaluator {wanted!r}", where=where, hint=f"evaluators: {known}")
        config = evaluators[wanted]
        if config.type != "command" and config.metric != name:
            hint = f"name the metric {config.metric}, or set the evaluator's metric"
            raise BadInput(f"evaluator {wanted} gives {config.metric!r}, not {name!r}", where=where, hint=hint)


def _check_names(primary: Sequence[str], secondary: Sequence[str], names: list[str], located: Located) -> None:
    if not primary:
        raise BadInput("analysis_plan.primary is empty", where=located.where(("analysis_plan", "primary")))
    for kind, given in (("primary", primary), ("secondary", secondary)):
        for name in given:
            if name not in names:
                hint = f"declared metrics: {', '.join(names)}"
                where = located.where(("analysis_plan", kind))
                raise BadInput(f"{kind} metric {name!r} is not declared", where=where, hint=hint)
    both = sorted(set(primary) & set(secondary))
    if both:
        where = located.where(("analysis_plan", "secondary"))
        raise BadInput(f"{both[0]!r} is both primary and secondary", where=where, hint="keep it in one of them")


def _needs_worst(metric: ResolvedMetric, planned: tuple[str, ...]) -> bool:
    return metric.type == "continuous" and metric.worst is None and metric.name in planned
