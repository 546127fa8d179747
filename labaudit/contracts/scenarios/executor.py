"""A ScenarioTask or an AtomicTask and a way to run one step, to the RunRecord of seed 004.

The executor moves the data, keeps the trace, bounds the time and writes the record; it does not know how a step is
run. `run_step` may call a module in this process, start a sandbox, or ask a remote agent. After a failed step the later
ones are recorded as skipped. Nothing here needs more than the standard library, so the same code runs in a sandbox.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .clocks import MachineClock, StepClock, elapsed_ms, stamp
from .data_flow import SCENARIO_INPUT, DataFlowError, Transfer, put, read_path
from .plan import plan_scenario

JsonObject = dict[str, Any]


class StepFailed(Exception):
    """A step gave no output; `stack` may say where."""

    def __init__(self, message: str, stack: str = "") -> None:
        super().__init__(message)
        # A lone surrogate in foreign text would make the whole record unreadable.
        self.message = message.encode("utf-8", "replace").decode("utf-8")
        self.stack = stack.encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True)
class StepResult:
    """What running one step gave: its output, its own trace events, and usage where it is known."""

    output: Any
    trace: tuple[JsonObject, ...] = ()
    tokens: int | None = None
    cost: float | None = None


@dataclass(frozen=True)
class StepCall:
    """One step as `run_step` gets it: the task with its input filled, its place, and its time limit."""

    task: JsonObject
    index: int
    timeout_ms: float | None
    transfers: tuple[tuple[str, str], ...] = ()


RunStep = Callable[[StepCall], StepResult]


@dataclass(frozen=True)
class Provenance:
    """Who ran a task, in which version, with which configuration."""

    runner_id: str
    runner_version: str
    config: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> JsonObject:
        """The `provenance` of a RunRecord."""
        return {
            "runnerId": self.runner_id,
            "runnerVersion": self.runner_version,
            "config": copy.deepcopy(dict(self.config)),
        }


class StepObserver:
    """Is told of each step's start and end; `step_ended` answers whether the run goes on."""

    def step_started(self, call: StepCall) -> None:
        """A step with its filled input is about to run."""

    def step_ended(self, call: StepCall, summary: JsonObject) -> bool:
        """A step has completed or failed."""
        return True


def is_scenario(task: object) -> bool:
    """True for a task that declares steps and a data flow."""
    return isinstance(task, Mapping) and "steps" in task and "input_map" in task


def execute(
    task: Mapping[str, Any],
    run_step: RunStep,
    *,
    run_id: str,
    provenance: Provenance,
    clock: StepClock | None = None,
    observer: StepObserver | None = None,
) -> JsonObject:
    """The RunRecord of one task; ScenarioInvalid when a scenario's data flow cannot be planned.

    The task must satisfy rules T and S (`labaudit contract check`).
    """
    run = _Run(task, run_step, clock or MachineClock(), observer or StepObserver())
    return run.record(run_id, provenance)


class _Run:
    """The state of one execution."""

    def __init__(
        self, task: Mapping[str, Any], run_step: RunStep, clock: StepClock, observer: StepObserver
    ) -> None:
        self.task = task
        self.scenario = is_scenario(task)
        self.steps: list[JsonObject] = list(task["steps"]) if self.scenario else [dict(task)]
        self.plan: list[list[Transfer]] = plan_scenario(task) if self.scenario else [[]]
        self.run_step = run_step
        self.clock = clock
        self.observer = observer
        self.trace: list[JsonObject] = []
        self.summaries: list[JsonObject] = []
        self.outputs: list[Any] = []
        self.tokens: list[int | None] = []
        self.costs: list[float | None] = []
        self.error: JsonObject | None = None
        self.began = clock.monotonic()

    def record(self, run_id: str, provenance: Provenance) -> JsonObject:
        """Runs every step and writes down what happened."""
        started = self._note("info", "started")
        for index, step in enumerate(self.steps):
            if self.error is None:
                self._execute_step(index, step)
            else:
                self._skip(step)
        latency = elapsed_ms(self.clock, self.began)
        outcome = {"output": self.outputs[-1]} if self.error is None else {"error": self.error}
        ended = (
            self._note("info", "completed")
            if self.error is None
            else self._note("error", "failed", data={"error": self.error["message"], "step": self.error["step"]})
        )
        return {
            "id": run_id,
            "taskId": self.task["id"],
            "taskType": "scenario" if self.scenario else "atomic",
            "status": "completed" if self.error is None else "failed",
            **outcome,
            "metrics": {"latency": latency, **self._usage()},
            "trace": self.trace,
            **({"steps": self.summaries} if self.scenario else {}),
            "startedAt": started,
            "completedAt": ended,
            "provenance": provenance.as_json(),
        }

    def _execute_step(self, index: int, step: JsonObject) -> None:
        begun = self.clock.monotonic()
        call: StepCall | None = None
        summary = {"stepId": step["id"], "stepName": step["name"], "status": "completed", "latency": 0.0}
        try:
            call = self._fill(index, step)
            self.observer.step_started(call)
            injected = [{"from": source, "to": target} for source, target in call.transfers]
            self._note_step("info", "step_started", step, {"type": step["type"], "injected": injected})
            result = self._bounded(call, begun)
            summary.update(latency=elapsed_ms(self.clock, begun), output=result.output)
            self._note_step("info", "step_completed", step)
        except StepFailed as failure:
            summary.update(status="failed", latency=elapsed_ms(self.clock, begun), error=failure.message)
            stack = {"stack": failure.stack} if failure.stack else {}
            self.error = {"message": failure.message, "step": step["id"], **stack}
            self._note_step("error", "step_failed", step, {"error": failure.message})
        self.summaries.append(summary)
        if call is not None and not self.observer.step_ended(call, summary):
            self._stop_after(index)

    def _bounded(self, call: StepCall, begun: float) -> StepResult:
        try:
            result = self.run_step(call)
        except StepFailed:
            raise
        except Exception as error:
            # A step is foreign code: whatever it raises is its failure, and the record must still be written.
            raise StepFailed(f"{type(error).__name__}: {error}") from error
        taken = elapsed_ms(self.clock, begun)
        _require_json(result.output)
        for event in result.trace:
            self.trace.append({**event, **({"step": call.task["id"]} if self.scenario else {})})
        if call.timeout_ms is not None and taken > call.timeout_ms:
            raise StepFailed(f"took {taken} ms, more than its timeout of {call.timeout_ms} ms")
        self.outputs.append(result.output)
        self.tokens.append(result.tokens)
        self.costs.append(result.cost)
        return result

    def _fill(self, index: int, step: JsonObject) -> StepCall:
        """The step with values of earlier steps in its input."""
        filled = dict(step)
        for source, target, (named, _) in self.plan[index]:
            root = self.task["metadata"].get(SCENARIO_INPUT, {}) if source.step is None else self.outputs[source.step]
            try:
                filled["input"] = put(filled["input"], target, read_path(root, source.path, named))
            except DataFlowError as error:
                raise StepFailed(f"{error.rule}: {error.message}") from error
        try:
            # A step may change what it is given; what other steps gave and the task itself stay as they are.
            filled = copy.deepcopy(filled)
        except RecursionError as error:
            raise StepFailed("the step's input nests too deeply") from error
        written = tuple(transfer.written for transfer in self.plan[index])
        return StepCall(filled, index, self._time_left(step), written)

    def _time_left(self, step: JsonObject) -> float | None:
        limits = []
        if _is_number(step["metadata"].get("timeout")):
            limits.append(float(step["metadata"]["timeout"]))
        whole = self.task["metadata"].get("timeout")
        if self.scenario and _is_number(whole):
            limits.append(max(0.0, float(whole) - elapsed_ms(self.clock, self.began)))
        return min(limits) if limits else None

    def _stop_after(self, index: int) -> None:
        following = self.steps[index + 1 :]
        if self.error is None and following:
            self.error = {"message": "stopped at a step boundary, as asked", "step": following[0]["id"]}

    def _skip(self, step: JsonObject) -> None:
        self.summaries.append(
            {"stepId": step["id"], "stepName": step["name"], "status": "skipped", "latency": 0.0}
        )
        self._note_step("warn", "step_skipped", step)

    def _note_step(self, level: str, event: str, step: JsonObject, data: JsonObject | None = None) -> None:
        # An atomic task is its own only step: started and completed say it all.
        if self.scenario:
            self._note(level, event, step["id"], data)

    def _note(self, level: str, event: str, step: str | None = None, data: JsonObject | None = None) -> str:
        moment = stamp(self.clock.now())
        entry: JsonObject = {"timestamp": moment, "level": level, "event": event}
        if step is not None:
            entry["step"] = step
        if data is not None:
            entry["data"] = data
        self.trace.append(entry)
        return moment

    def _usage(self) -> JsonObject:
        """Tokens and cost only when every step that ran told them: a sum with gaps is no sum."""
        usage: JsonObject = {}
        tokens = [count for count in self.tokens if count is not None]
        if tokens and len(tokens) == len(self.tokens):
            usage["tokens"] = sum(tokens)
        costs = [cost for cost in self.costs if cost is not None]
        if costs and len(costs) == len(self.costs):
            usage["cost"] = sum(costs)
        return usage


def _require_json(output: Any) -> None:
    try:
        json.dumps(output, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise StepFailed(f"the output is no JSON value: {error}") from error


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
