"""Verdicts, the harness's own metrics and the framework's measurements to one `metrics.json`.

A declared metric comes from its declared source alone; metrics that the harness reports beyond them are kept and
labelled self-reported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from labaudit.evaluators.verdict import Cause, Value, Verdict
from labaudit.records.ids import Ids
from labaudit.records.metrics import Metrics
from labaudit.records.resolved import ResolvedMetric


def assemble_metrics(
    *,
    ids: Ids,
    outcome: str,
    declared: Sequence[ResolvedMetric],
    verdicts: Mapping[str, Sequence[Verdict]],
    harness: Mapping[str, object],
    harness_cause: Cause | None,
    framework: Mapping[str, Value | None],
) -> Metrics:
    """The trial's metrics: every declared one with a value or a cause, then what the harness reports besides."""
    values: dict[str, Value | None] = {}
    sources: dict[str, str] = {}
    missing: dict[str, Cause] = {}
    for metric in declared:
        sources[metric.name] = metric.source
        value, cause = _declared_value(metric, verdicts, harness, harness_cause, framework)
        values[metric.name] = value
        if cause is not None:
            missing[metric.name] = cause
    for name, reported in sorted(harness.items()):
        if name not in values:
            value, cause = _usable(reported)
            values[name], sources[name] = value, "harness"
            if cause is not None:
                missing[name] = cause
    for evaluator_id, given in sorted(verdicts.items()):
        for verdict in given:
            if verdict.metric not in values:
                values[verdict.metric], sources[verdict.metric] = verdict.value, f"evaluator:{evaluator_id}"
                if verdict.cause is not None:
                    missing[verdict.metric] = verdict.cause
    return Metrics(
        ids=ids,
        outcome=outcome,  # type: ignore[arg-type]
        metrics=values,
        sources=sources,
        missing=missing,
        self_reported=tuple(sorted(name for name, source in sources.items() if source == "harness")),
    )


def _declared_value(
    metric: ResolvedMetric,
    verdicts: Mapping[str, Sequence[Verdict]],
    harness: Mapping[str, object],
    harness_cause: Cause | None,
    framework: Mapping[str, Value | None],
) -> tuple[Value | None, Cause | None]:
    if metric.source.startswith("evaluator:"):
        for verdict in verdicts.get(metric.source.removeprefix("evaluator:"), ()):
            if verdict.metric == metric.name:
                return verdict.value, verdict.cause
        return None, "absent"
    if metric.source == "framework":
        value = framework.get(metric.name)
        return value, None if value is not None else "absent"
    if metric.name not in harness:
        return None, harness_cause or "absent"
    return _usable(harness[metric.name])


def _usable(value: object) -> tuple[Value | None, Cause | None]:
    if value is None:
        return None, "missing"
    if isinstance(value, float) and not math.isfinite(value):
        return None, "nan"
    if isinstance(value, (bool, int, float, str)):
        return value, None
    return None, "invalid"
