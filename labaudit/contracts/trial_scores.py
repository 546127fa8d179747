"""A trial's metrics and its modules' judgements to ScoreRecords with deterministic ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labaudit.contracts.rules.finding import is_number
from labaudit.contracts.rules.score_rules import check_score, score_refers_to_a_known_run_and_step
from labaudit.contracts.scenarios.executor import is_scenario
from labaudit.contracts.scenarios.module import Evaluator, Score, score_record
from labaudit.contracts.scenarios.scoring import score_run
from labaudit.contracts.trial_mapping import FRAMEWORK_EVALUATOR, SELF_REPORTED

# Names that speak of the whole process; any other metric judges the final output.
_PROCESS_WORDS = frozenset(["latency", "duration", "cost", "tokens", "steps", "turns", "calls", "retries", "time"])
Json = Mapping[str, Any]


def score_records_from_metrics(
    metrics: Json,
    *,
    run_id: str,
    created_at: str,
    explanations: Mapping[str, tuple[str, Sequence[str]]] | None = None,
) -> list[dict[str, Any]]:
    """One ScoreRecord per metric of a metrics.json that has a value; null is missingness and gives none.

    `run_id` is the RunRecord's id, that is the trial id. `explanations` maps a metric to the sentence and snippets of
    the evaluator that gave it.
    """
    values, sources = metrics.get("metrics", {}), metrics.get("sources", {})
    records = []
    for name in sorted(values):
        value = values[name]
        if not (isinstance(value, bool | str) or is_number(value)):
            continue
        explanation, snippets = (explanations or {}).get(name, ("", ()))
        score = Score(name, value, _target(name), explanation, tuple(snippets))
        records.append(score_record(run_id, _evaluator(sources.get(name)), score, created_at))
    return records


def score_records_from_modules(
    task: Json, run: Json, evaluators: Mapping[str, Evaluator]
) -> tuple[list[dict[str, Any]], list[str]]:
    """The scores that module evaluators give a run, and in words what an evaluator got wrong.

    An evaluator is foreign code: when it raises or gives a record that breaks the contract, its scores are left out and
    that is told. A task of another shape than AtomicTask and ScenarioTask has no module scores.
    """
    if not is_scenario(task) and not isinstance(task.get("type"), str):
        return [], []
    try:
        given = score_run(task, run, evaluators)
    except Exception as error:  # noqa: BLE001 - foreign code: a bug in it must not cost the trial
        return [], [f"an evaluator failed: {type(error).__name__}: {error}"]
    known = {run["id"]: frozenset(step["stepId"] for step in run.get("steps", ()))}
    records: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    for record in given:
        broken = [*check_score(record), *score_refers_to_a_known_run_and_step(record, known)]
        if broken:
            problems.append(f"{record.get('evaluatorId')}: {broken[0].rule}: {broken[0].message}")
        else:
            records.setdefault(record["id"], record)
    return list(records.values()), problems


def _target(metric: str) -> str:
    return "global" if _PROCESS_WORDS & set(metric.lower().split("_")) else "final"


def _evaluator(source: object) -> str:
    if isinstance(source, str) and source.startswith("evaluator:"):
        return source.removeprefix("evaluator:")
    return FRAMEWORK_EVALUATOR if source == "framework" else "imported" if source == "imported" else SELF_REPORTED
