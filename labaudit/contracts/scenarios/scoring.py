"""A RunRecord and the evaluators of its steps' types to ScoreRecords by target: `final`, `global`, `step:<id>`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .executor import JsonObject, is_scenario
from .module import Evaluator, Score, score_id, score_record

SCENARIO_EVALUATOR = "scenario.metrics"
SCENARIO_METRICS = ("completed", "steps_completed", "latency")


def score_run(
    task: Mapping[str, Any], run: Mapping[str, Any], evaluators: Mapping[str, Evaluator]
) -> list[JsonObject]:
    """Every score that can be told of a run; `evaluators` are keyed by the task type they judge.

    A step's own scores carry the target `step:<id>`; those of the last step are given for `final` as well, since its
    output is the scenario's. Steps that did not complete have no score of their own.
    """
    if not is_scenario(task):
        evaluator = evaluators.get(task["type"])
        return evaluator.evaluate(run, task) if evaluator is not None else []
    scores: list[JsonObject] = []
    for step, summary in zip(task["steps"], run["steps"], strict=True):
        evaluator = evaluators.get(step["type"])
        if evaluator is None or summary["status"] != "completed":
            continue
        for score in evaluator.evaluate(_step_view(run, step, summary), step):
            scores.append(_retarget(score, f"step:{step['id']}"))
            if step is task["steps"][-1] and score["target"] == "final":
                scores.append(score)
    return scores + _scenario_scores(run)


def _step_view(run: Mapping[str, Any], step: Mapping[str, Any], summary: Mapping[str, Any]) -> JsonObject:
    """One step of a scenario's run as the run of an atomic task, under the scenario's run id."""
    return {
        "id": run["id"],
        "taskId": step["id"],
        "taskType": "atomic",
        "status": "completed",
        "output": summary.get("output"),
        "metrics": {"latency": summary["latency"]},
        "trace": [
            {key: value for key, value in event.items() if key != "step"}
            for event in run["trace"]
            if event.get("step") == step["id"]
        ],
        "startedAt": run["startedAt"],
        "completedAt": run.get("completedAt", run["startedAt"]),
        "provenance": run["provenance"],
    }


def _retarget(score: JsonObject, target: str) -> JsonObject:
    return {**score, "target": target, "id": score_id(score["runId"], score["metric"], target, score["evaluatorId"])}


def _scenario_scores(run: Mapping[str, Any]) -> list[JsonObject]:
    created = run.get("completedAt") or run["startedAt"]
    done = sum(summary["status"] == "completed" for summary in run["steps"])
    scores = [
        Score("completed", run["status"] == "completed", "final"),
        Score("steps_completed", done, "global", f"{done} of {len(run['steps'])} steps completed"),
        Score("latency", run["metrics"]["latency"], "global"),
    ]
    return [score_record(run["id"], SCENARIO_EVALUATOR, score, created) for score in scores]
