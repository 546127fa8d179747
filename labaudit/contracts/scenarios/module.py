"""What a capability module is: a Runner that executes tasks of one type, and an Evaluator that scores its runs.

The two interfaces are those of seed 004 section 4 and 5. `FunctionRunner` and `FunctionEvaluator` turn plain functions
into them, with the trace, the error context and the record ids that the contract asks for.
"""

from __future__ import annotations

import hashlib
import json
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from .clocks import MachineClock, StepClock
from .executor import JsonObject, Provenance, RunStep, StepCall, StepFailed, StepResult, execute


@runtime_checkable
class Runner(Protocol):
    """Executes tasks of one type."""

    id: str
    type: str
    version: str

    def execute(self, task: Mapping[str, Any], config: Mapping[str, Any]) -> JsonObject:
        """The RunRecord of one AtomicTask."""
        ...


@runtime_checkable
class Evaluator(Protocol):
    """Scores runs; `metrics` declares the names it may use."""

    id: str
    metrics: Sequence[str]

    def evaluate(self, run: Mapping[str, Any], task: Mapping[str, Any]) -> list[JsonObject]:
        """The ScoreRecords of one run of one AtomicTask."""
        ...


@dataclass(frozen=True)
class Module:
    """A capability: what the entry point `labaudit.modules` names."""

    type: str
    version: str
    runner: Runner
    evaluator: Evaluator


class FunctionRunner:
    """A Runner around `process(task, config) -> output`."""

    def __init__(
        self,
        type_: str,
        version: str,
        process: Callable[[Mapping[str, Any], Mapping[str, Any]], Any],
        clock: StepClock | None = None,
    ) -> None:
        self.id = f"{type_}.runner"
        self.type = type_
        self.version = version
        self._process = process
        self._clock = clock or MachineClock()

    def execute(self, task: Mapping[str, Any], config: Mapping[str, Any]) -> JsonObject:
        """The RunRecord, failed with its step when `process` raises."""

        def run_step(call: StepCall) -> StepResult:
            try:
                return StepResult(self._process(call.task, config))
            except Exception as error:
                raise StepFailed(f"{type(error).__name__}: {error}", traceback.format_exc()) from error

        provenance = Provenance(self.id, self.version, config)
        return execute(task, run_step, run_id=f"run-{task['id']}", provenance=provenance, clock=self._clock)


@dataclass(frozen=True)
class Score:
    """A metric's value before it becomes a record; `target` is `final` or `global`."""

    metric: str
    value: float | bool | str
    target: str = "final"
    explanation: str = ""
    snippets: tuple[str, ...] = ()


class FunctionEvaluator:
    """An Evaluator around `judge(run, task) -> scores`; what cannot be scored is left out, never a zero."""

    def __init__(
        self,
        type_: str,
        metrics: Sequence[str],
        judge: Callable[[Mapping[str, Any], Mapping[str, Any]], Sequence[Score]],
    ) -> None:
        self.id = f"{type_}.metrics"
        self.metrics: Sequence[str] = tuple(metrics)
        self._judge = judge

    def evaluate(self, run: Mapping[str, Any], task: Mapping[str, Any]) -> list[JsonObject]:
        """The scores as records that refer to the run."""
        created = run.get("completedAt") or run["startedAt"]
        return [score_record(run["id"], self.id, score, created) for score in self._judge(run, task)]


def score_record(run_id: str, evaluator_id: str, score: Score, created_at: str) -> JsonObject:
    """The ScoreRecord of one score."""
    evidence: JsonObject = {}
    if score.explanation:
        evidence["explanation"] = score.explanation
    if score.snippets:
        evidence["snippets"] = list(score.snippets)
    return {
        "id": score_id(run_id, score.metric, score.target, evaluator_id),
        "runId": run_id,
        "metric": score.metric,
        "value": score.value,
        "target": score.target,
        **({"evidence": evidence} if evidence else {}),
        "evaluatorId": evaluator_id,
        "createdAt": created_at,
    }


def score_id(run_id: str, metric: str, target: str, evaluator_id: str) -> str:
    """An id that depends on nothing but what is scored, by whom and on which run."""
    parts = ["labaudit/score/v1", run_id, metric, target, evaluator_id]
    text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    return "score-" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def step_runner(runners: Mapping[str, Runner], config: Mapping[str, Any]) -> RunStep:
    """A `run_step` that gives each step to the Runner of its type."""

    def run_step(call: StepCall) -> StepResult:
        kind = call.task["type"]
        if kind not in runners:
            raise StepFailed(f"no module runs tasks of type {kind!r}; there are: {', '.join(sorted(runners))}")
        record = runners[kind].execute(call.task, config)
        if record["status"] != "completed":
            error = record.get("error", {})
            raise StepFailed(error.get("message", "the runner gave no reason"), error.get("stack", ""))
        usage = record["metrics"]
        # The executor tells the step's start and end itself; what lies between is the module's own to tell.
        between = tuple(event for event in record["trace"] if event.get("event") not in ("started", "completed"))
        return StepResult(record["output"], between, usage.get("tokens"), usage.get("cost"))

    return run_step
