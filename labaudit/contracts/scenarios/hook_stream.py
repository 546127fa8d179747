"""Steps as they happen to the lines of `harness_events.jsonl`, and the control file to an acknowledged action."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .clocks import StepClock, stamp
from .executor import JsonObject, StepCall, StepObserver

EVENTS_NAME = "harness_events.jsonl"
SCENARIO_STEP = "scenario_step"


class HookStream(StepObserver):
    """Writes start, end and acknowledgement of each step; a `stop` in the control file ends the run after its step.

    The step's id travels in `ext.scenario_step`, because `step_index` counts and a RunRecord names.
    """

    def __init__(self, path: Path, ids: Mapping[str, Any], control: Path | None, clock: StepClock) -> None:
        self._path = path
        self._ids = dict(ids)
        self._control = control
        self._clock = clock
        self._seq = 0
        path.write_text("", encoding="utf-8")

    def step_started(self, call: StepCall) -> None:
        """`agent_step_start`, with the transfers that filled the step's input."""
        injected = [{"from": source, "to": target} for source, target in call.transfers]
        self._write("agent_step_start", call, ext={"injected": injected, "task_type": call.task["type"]})

    def step_ended(self, call: StepCall, summary: JsonObject) -> bool:
        """`error` when the step failed, `agent_step_end`, `control_ack`; False when the control file says stop."""
        if summary["status"] == "failed":
            message = summary.get("error") or "the step failed"
            self._write("error", call, error_type="step_failed", message=message)
        self._write("agent_step_end", call, ext={"latency_ms": summary["latency"], "status": summary["status"]})
        return self._acknowledge(call) != "stop"

    def _acknowledge(self, call: StepCall) -> str:
        if self._control is None:
            return "continue"
        try:
            data = self._control.read_bytes()
            order = json.loads(data)
            action = order["action"]
            seq = {"control_seq": order["control_seq"]} if isinstance(order.get("control_seq"), int) else {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            # Without a readable order there is nothing to acknowledge; the missing line says so.
            return "continue"
        if action not in ("continue", "stop", "checkpoint"):
            return "continue"
        version = "sha256:" + hashlib.sha256(data).hexdigest()
        # A checkpoint is the runner's work: it archives after this line, the harness only holds still.
        taken = "stop" if action == "stop" else action
        self._write("control_ack", call, control_version=version, action_observed=action, action_taken=taken, **seq)
        return str(action)

    def _write(self, event_type: str, call: StepCall, *, ext: JsonObject | None = None, **fields: Any) -> None:
        event = {
            "hooks_schema_version": "hook_events_v1",
            "event_type": event_type,
            "ts": stamp(self._clock.now()),
            "seq": self._seq,
            "ids": self._ids,
            "step_index": call.index,
            **fields,
            "ext": {SCENARIO_STEP: call.task["id"], **(ext or {})},
        }
        self._seq += 1
        # One write and one flush per line: the runner follows this file while the harness works.
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(event, ensure_ascii=False, allow_nan=False) + "\n")
