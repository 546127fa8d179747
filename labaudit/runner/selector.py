"""`step:N`, `seq:N` or `checkpoint:LABEL` of a trial to the step that a fork begins with, and what to restore."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from labaudit.errors import BadInput
from labaudit.records.checkpoint import Checkpoint
from labaudit.runner.checkpoints.checkpoint import read_checkpoints
from labaudit.store.run_folder import TrialFolder


@dataclass(frozen=True)
class ForkPoint:
    """The first step that runs with changed bindings, and the nearest checkpoint before it."""

    selector: str
    step: int
    checkpoint: Checkpoint | None


def find_point(trial: TrialFolder, selector: str) -> ForkPoint:
    """The point that a selector names; BadInput when the trial has no such step, event or checkpoint."""
    kind, _, value = selector.partition(":")
    saved = read_checkpoints(trial)
    if kind == "checkpoint":
        chosen = saved.get(value)
        if chosen is None:
            hint = f"there are {', '.join(saved)}" if saved else "the trial saved none"
            raise BadInput(f"there is no checkpoint {value!r}", where=trial.trial_id, hint=hint)
        return ForkPoint(selector, (chosen.step_index if chosen.step_index is not None else -1) + 1, chosen)
    if kind not in {"step", "seq"} or not value.isdigit():
        raise BadInput(f"{selector!r} is no selector", hint="step:N, seq:N or checkpoint:LABEL")
    steps = _steps(trial)
    step = int(value) if kind == "step" else _step_of_seq(trial, int(value))
    if step not in steps:
        known = f"it has steps {min(steps)} to {max(steps)}" if steps else "its hook stream shows no step"
        raise BadInput(f"{selector} is past the end of trial {trial.trial_id}", hint=known)
    before = [item for item in saved.values() if item.step_index is not None and item.step_index < step]
    usable = [item for item in before if item.restorable is not False]
    return ForkPoint(selector, step, max(usable, key=lambda item: item.step_index or 0, default=None))


def _events(trial: TrialFolder) -> list[dict[str, object]]:
    if not trial.harness_events.is_file():
        raise BadInput("the trial has no hook stream, so it has no steps to fork at", where=trial.trial_id)
    with trial.harness_events.open("rb") as stream:
        return [event for line in stream if isinstance(event := orjson.loads(line), dict)]


def _steps(trial: TrialFolder) -> set[int]:
    found = (event.get("step_index") for event in _events(trial) if event.get("event_type") == "agent_step_start")
    return {step for step in found if isinstance(step, int)}


def _step_of_seq(trial: TrialFolder, seq: int) -> int:
    """The step that the hook event `seq` belongs to; an event before the first step belongs to that."""
    at = -1
    for event in _events(trial):
        if event.get("event_type") == "agent_step_start" and isinstance(step := event.get("step_index"), int):
            at = step
        if event.get("seq") == seq:
            return max(at, 0)
    raise BadInput(f"seq:{seq} is past the end of trial {trial.trial_id}", hint="see harness_events.jsonl")
