"""A running trial, watched: its hook stream followed, control written, budgets kept, checkpoints taken.

The harness is told through the control file and nothing else; it answers by `control_ack` in its hook stream. What is
counted here only decides what to write next: the evidence is judged afterwards from the finished stream.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from labaudit.errors import LabauditError
from labaudit.evidence.harness_manifest import DEFAULT_EVENTS, HarnessManifest
from labaudit.evidence.inside_out import open_regular
from labaudit.harnesses.control_plane import ControlPlane
from labaudit.records.resolved import ResolvedExperiment

MAX_PENDING = 1 << 20
# A harness that was told to stop at its next step end gets this long before it is stopped by force.
STOP_GRACE_SECONDS = 30.0
CHUNK = 1 << 18


class HookFollower:
    """Reads complete new lines of a growing hook stream; whatever is odd about the file is not its business."""

    def __init__(self, out: Path, inside_out: str) -> None:
        self._out = out
        self._inside_out = inside_out
        self._path: str | None = None
        self._offset = 0
        self._pending = b""

    def new_events(self) -> list[dict[str, Any]]:
        """The events of lines that were completed since the last call."""
        path = self._path or self._find()
        try:
            stream = open_regular(self._out, path)
        except LabauditError:
            return []
        if stream is None:
            return []
        with stream:
            stream.seek(self._offset)
            data = stream.read(CHUNK)
        self._offset += len(data)
        lines = (self._pending + data).split(b"\n")
        self._pending = lines.pop()[-MAX_PENDING:]
        return [event for line in lines if (event := _event(line)) is not None]

    def _find(self) -> str:
        """Where the manifest says the events are; asked again until there is a manifest."""
        try:
            stream = open_regular(self._out, "harness_manifest.json")
            if stream is None:
                return DEFAULT_EVENTS
            with stream:
                manifest = HarnessManifest.from_bytes(stream.read(MAX_PENDING))
            self._path = manifest.events_path(self._inside_out) or DEFAULT_EVENTS
        except LabauditError:
            return DEFAULT_EVENTS
        return self._path


@dataclass
class Progress:
    """What the hook stream has shown so far; it decides what is written next, and proves nothing."""

    steps: int = 0
    tool_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    last_step: int | None = None
    hook_seq: int | None = None

    @property
    def budgets(self) -> dict[str, int]:
        """As a checkpoint keeps them."""
        return {
            "steps": self.steps,
            "tool_calls": self.tool_calls,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
        }

    def take(self, event: dict[str, Any]) -> None:
        """Counts one event."""
        if type(event.get("seq")) is int:
            self.hook_seq = event["seq"]
        kind = event.get("event_type")
        if kind == "agent_step_end":
            self.steps += 1
            self.last_step = event["step_index"] if type(event.get("step_index")) is int else None
        elif kind == "tool_call_end":
            self.tool_calls += 1
        elif kind == "model_call_end" and isinstance(usage := event.get("usage"), dict):
            self.tokens_in += usage["tokens_in"] if type(usage.get("tokens_in")) is int else 0
            self.tokens_out += usage["tokens_out"] if type(usage.get("tokens_out")) is int else 0


class LiveTrial:
    """Follows one attempt; `poll` is what the harness driver calls again and again."""

    def __init__(
        self,
        resolved: ResolvedExperiment,
        follower: HookFollower,
        control: ControlPlane,
        *,
        stop: threading.Event,
        requests: Callable[[], list[tuple[str, str | None]]],
        take_checkpoint: Callable[[str, int | None, Progress], None],
        now: Callable[[], float],
    ) -> None:
        self._budgets = resolved.runtime.budgets
        self._every = resolved.runtime.checkpoints.every_steps
        self._follower = follower
        self._control = control
        self._stop = stop
        self._requests = requests
        self._take_checkpoint = take_checkpoint
        self._now = now
        self.progress = Progress()
        self._stopping_since: float | None = None
        self._asked: dict[str, str] = {}
        self._lock = threading.Lock()
        self.budget_spent: str | None = None

    def poll(self) -> str | None:
        """Takes in what is new; a text is the reason to end the sandbox now."""
        with self._lock:
            while events := self._follower.new_events():
                for event in events:
                    self._take(event)
            for action, label in self._requests():
                self._operator(action, label)
            if self._stop.is_set():
                return "the run was interrupted"
            if self._stopping_since is not None and self._now() - self._stopping_since > STOP_GRACE_SECONDS:
                return f"{self.budget_spent}; the harness did not stop by itself"
        return None

    def _take(self, event: dict[str, Any]) -> None:
        self.progress.take(event)
        kind, steps = event.get("event_type"), self.progress.steps
        if kind == "agent_step_end" and self._every and steps % self._every == 0 and self._stopping_since is None:
            self._ask_checkpoint(f"step-{steps}")
        elif kind == "control_ack":
            self._acknowledged(event)
        self._keep_budgets()

    def _keep_budgets(self) -> None:
        if self._stopping_since is not None:
            return
        for name, used in (
            ("max_steps", self.progress.steps),
            ("max_tool_calls", self.progress.tool_calls),
            ("max_total_tokens", self.progress.tokens_in + self.progress.tokens_out),
        ):
            limit = getattr(self._budgets, name)
            if limit is not None and used >= limit:
                self.budget_spent = f"budget {name}={limit} is spent"
                self._control.write("stop", by="runner")
                self._stopping_since = self._now()
                return

    def _operator(self, action: str, label: str | None) -> None:
        if action == "checkpoint":
            label = label or f"operator-{self.progress.steps}"
        version = self._control.write(action, label, by="operator")
        if action == "checkpoint" and label is not None:
            self._asked[version] = label

    def _ask_checkpoint(self, label: str) -> None:
        self._asked[self._control.write("checkpoint", label, by="runner")] = label

    def _acknowledged(self, event: dict[str, Any]) -> None:
        """A checkpoint is taken once its ack is there: the harness stands at a step end and says so."""
        version = event.get("control_version")
        label = self._asked.pop(version, None) if isinstance(version, str) else None
        if label is None or event.get("action_observed") != "checkpoint":
            return
        step = event.get("step_index")
        self._take_checkpoint(label, step if type(step) is int else None, self.progress)
        if self._stopping_since is None:
            self._control.write("continue", by="runner")


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
