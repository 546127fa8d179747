"""ScoreRecord: rules C1-C5."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from labaudit.contracts.rules.date_rules import date_has_an_offset
from labaudit.contracts.rules.finding import (
    Findings,
    Json,
    error,
    is_number,
    kind_of,
    required_text,
    unknown_keys,
    warning,
)

REQUIRED = ("id", "runId", "metric", "value", "target", "evaluatorId", "createdAt")
SCORE_FIELDS = frozenset([*REQUIRED, "evidence"])
_EVIDENCE = frozenset(["explanation", "snippets", "alignment"])
STEP = "step:"


def check_score(score: Json) -> Findings:
    """Every C rule that a ScoreRecord can break by itself, and its date."""
    yield from score_has_its_fields(score)
    yield from target_is_final_global_or_a_step(score)
    yield from evidence_is_closed(score)
    yield from date_has_an_offset(score, "createdAt")


def score_has_its_fields(score: Json) -> Findings:
    """C1: all fields but evidence are there; the value is a finite number, a boolean or a string."""
    yield from required_text(score, ("id", "runId", "metric", "evaluatorId"), "C1")
    value = score.get("value")
    if not (isinstance(value, bool | str) or is_number(value)):
        found = kind_of(value) if "value" in score else "nothing"
        hint = "a metric that is missing has no score record" if value is None else ""
        yield error("C1", "$.value", f"value must be a finite number, a boolean or a string; there is {found}", hint)
    for key in ("target", "createdAt"):
        if key not in score:
            yield error("C1", f"$.{key}", f"{key} is missing")
    yield from unknown_keys(score, SCORE_FIELDS, "C1")


def target_is_final_global_or_a_step(score: Json) -> Findings:
    """C2: final, global, or step:<id> with an id."""
    target = score.get("target")
    if target in ("final", "global") or "target" not in score:
        return
    if not (isinstance(target, str) and target.startswith(STEP) and len(target) > len(STEP)):
        found = repr(target[:60]) if isinstance(target, str) else kind_of(target)
        yield error("C2", "$.target", f"target must be final, global or step:<id>; there is {found}")


def evidence_is_closed(score: Json) -> Findings:
    """C4: evidence has an explanation, snippets and alignment, and nothing else."""
    if "evidence" not in score:
        return
    evidence = score["evidence"]
    if not isinstance(evidence, dict):
        yield error("C4", "$.evidence", f"evidence must be an object, there is {kind_of(evidence)}")
        return
    yield from unknown_keys(evidence, _EVIDENCE, "C4", "$.evidence")
    if not isinstance(evidence.get("explanation", ""), str):
        yield error("C4", "$.evidence.explanation", "explanation must be a string")
    snippets = evidence.get("snippets", [])
    if not (isinstance(snippets, list) and all(isinstance(snippet, str) for snippet in snippets)):
        yield error("C4", "$.evidence.snippets", "snippets must be an array of strings")
    if not isinstance(evidence.get("alignment", {}), dict):
        yield error("C4", "$.evidence.alignment", "alignment must be an object")


def score_refers_to_a_known_run_and_step(score: Json, runs: Mapping[str, frozenset[str]]) -> Findings:
    """C3: runId is one of these runs, and a step target one of its steps. `runs` maps each run's id to its step ids."""
    run_id, target = score.get("runId"), score.get("target")
    if not isinstance(run_id, str):
        return
    if run_id not in runs:
        yield error("C3", "$.runId", f"there is no run {run_id[:60]!r} among the records checked with it")
    elif isinstance(target, str) and target.startswith(STEP) and target[len(STEP) :] not in runs[run_id]:
        yield error("C3", "$.target", f"run {run_id[:60]!r} has no step {target[len(STEP) :][:60]!r}")


def metric_is_declared(score: Json, declared: Mapping[str, Collection[str]]) -> Findings:
    """C5: a metric that its evaluator does not declare is a warning; evaluators not known here are left out."""
    evaluator, metric = score.get("evaluatorId"), score.get("metric")
    if not (isinstance(evaluator, str) and isinstance(metric, str)):
        return
    if evaluator in declared and metric not in declared[evaluator]:
        yield warning(
            "C5",
            "$.metric",
            f"evaluator {evaluator[:60]!r} does not declare the metric {metric[:60]!r}",
            "declared: " + ", ".join(sorted(declared[evaluator])[:10]),
        )
