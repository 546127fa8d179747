"""A harness's work to its evidence: manifest, hook events, control acknowledgements, recorded boundaries, output.

    with Session.open("my-agent", "1.0", level="sdk_full", step_semantics="one model call with its tools") as lab:
        while lab.running:
            with lab.step():
                answer = lab.model("greeter", {"prompt": lab.trial.task["prompt"]}, call_model)
        lab.finish("success", answer=answer["text"])

At each step's end the session looks at the control file and acknowledges what it found. A wrapped call is an event; at
level sdk_full it is also a recorded boundary, and calls are made one at a time so that a replay meets them in order.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from .calls import Caller
from .canonical import canonical_json
from .control import Control, read_control, wait_for_change
from .errors import ReplayDivergence, SdkError, StopRequested
from .events import EventWriter
from .files import write_whole
from .manifest import EVENTS, MANIFEST, build_manifest, write_manifest
from .trial import REPLAY_VARIABLE, Trial

HOLD_SECONDS = 5.0


class Session:
    """One trial from its input to its output. Use it as a context manager."""

    def __init__(self, trial: Trial, level: str, step_semantics: str, name: str, version: str, header: bool) -> None:
        self.trial = trial
        self.level = level
        self.stopped = False
        self.on_pause: Callable[[str | None], None] | None = None
        """Called before a checkpoint is acknowledged: come to rest, nothing may be in flight."""
        self.on_checkpoint: Callable[[str | None], None] | None = None
        """Called next: write what is needed to go on from here to the state folder."""
        self.on_stop: Callable[[], None] | None = None
        """Called before a stop is acknowledged."""
        self._lock = threading.RLock()
        self._step: int | None = None
        self._next_step = 0
        self._held = ""
        self._finished = False
        self._reported: BaseException | None = None
        document = build_manifest(
            level,
            name=name,
            version=version,
            step_semantics=step_semantics,
            control_path=trial.control_path,
            header=header,
        )
        digest = write_manifest(trial.in_out(MANIFEST), document)
        self._events = EventWriter(trial.in_out(EVENTS), trial.ids)
        self._calls = Caller(trial, self._events, self._lock, record=level == "sdk_full")
        if header:
            self._events.write(
                "hooks.header",
                hooks_schema_version="hook_events_v1",
                step_semantics=step_semantics,
                integration_level=level,
                manifest_digest=digest,
            )

    @classmethod
    def open(
        cls,
        name: str,
        version: str = "0",
        *,
        level: str = "sdk_control",
        step_semantics: str,
        trial: Trial | None = None,
        header: bool = True,
    ) -> Session:
        """Reads the trial's input and writes the manifest."""
        return cls(trial or Trial.load(), level, step_semantics, name, version, header)

    @property
    def running(self) -> bool:
        """False once a stop was acknowledged or the step budget is spent."""
        limit = self.trial.budgets.get("max_steps")
        return not self.stopped and (limit is None or self._next_step < limit)

    @property
    def replaying(self) -> bool:
        """True when wrapped calls are answered from a record."""
        return bool(os.environ.get(REPLAY_VARIABLE))

    @property
    def bindings(self) -> dict[str, Any]:
        """The bindings that hold now. Ask inside a step: in a forked trial they change at the step of the fork."""
        return self.trial.bindings_at(self._step if self._step is not None else self._next_step)

    @property
    def restored_step(self) -> int | None:
        """Of a trial that was started from a checkpoint: the last step that the checkpoint holds; else None."""
        restored = self.trial.fork.get("restored")
        return restored["step_index"] if isinstance(restored, dict) else None

    def continue_after(self, step: int) -> None:
        """For a harness that found its own state in a restored checkpoint: the next step is the one after `step`."""
        if self._step is not None or self._next_step:
            raise SdkError("steps have begun already")
        self._next_step = step + 1

    def step(self) -> _Step:
        """The next step, as a context manager that gives its index."""
        return _Step(self)

    def model(self, name: str, request: Any, call: Callable[[Any], Any], **details: Any) -> Any:
        """Calls a model with a JSON request and returns its JSON response; details: see `Caller.model`."""
        return self._calls.model(name, request, call, step_index=self._step, **details)

    def tool(self, name: str, request: Any, call: Callable[[Any], Any], **details: Any) -> Any:
        """Calls a tool with a JSON request and returns its JSON response; details: see `Caller.tool`."""
        return self._calls.tool(name, request, call, step_index=self._step, **details)

    def value(self, name: str, call: Callable[[], Any]) -> Any:
        """A value from outside that is no call (a clock, a random number), recorded at level sdk_full."""
        return self._calls.value(name, call, step_index=self._step)

    def error(self, message: str, error_type: str = "error") -> None:
        """Says that something went wrong; the harness goes on. Between steps it belongs to the last one."""
        last = self._next_step - 1 if self._next_step else None
        step = self._step if self._step is not None else last
        self._events.write("error", message=message or error_type, error_type=error_type, step_index=step)

    def finish(self, outcome: str, *, answer: Any = None, metrics: dict[str, Any] | None = None, **more: Any) -> None:
        """Writes trial_output.json; `more` may hold artifacts, error and ext."""
        output = {"schema_version": "trial_output_v1", "ids": self.trial.ids, "outcome": outcome}
        optional = {"answer": answer, "metrics": metrics, **more}
        output.update((key, value) for key, value in optional.items() if value is not None)
        write_whole(self.trial.output_path, canonical_json(output))
        self._finished = True

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        """Ends every record. A stop is a normal end; any other exception is written down and goes on."""
        try:
            if error is not None and error is not self._reported and not isinstance(error, StopRequested):
                self.error(str(error), getattr(error, "error_type", type(error).__name__))
            left = self._calls.left
            if error is None and left:
                error = ReplayDivergence(self._calls.made, f"{left} recorded boundaries were not met")
        finally:
            self._calls.close()
            self._events.close()
        self._write_end(error)
        if isinstance(error, ReplayDivergence) and kind is None:
            raise error
        return isinstance(error, StopRequested)

    def _write_end(self, error: BaseException | None) -> None:
        if isinstance(error, StopRequested) or error is None:
            if not self._finished:
                self.finish("missing")
        elif isinstance(error, (Exception, KeyboardInterrupt)):
            told = {"error_type": getattr(error, "error_type", type(error).__name__), "message": str(error)}
            self.finish("error", error=told)

    def _start_step(self) -> int:
        if self.stopped:
            raise StopRequested("a stop was acknowledged; no further step may start")
        if self._step is not None:
            raise SdkError("steps do not nest")
        self._step = self._next_step
        self._next_step += 1
        self._events.write("agent_step_start", step_index=self._step)
        return self._step

    def _end_step(self, error: BaseException | None) -> None:
        if error is not None:
            self.error(str(error), getattr(error, "error_type", type(error).__name__))
            self._reported = error
        index, self._step = self._step, None
        self._events.write("agent_step_end", step_index=index, budgets=self._calls.spent(self._next_step))
        self._acknowledge(index, read_control(self.trial.control_path))

    def _acknowledge(self, index: int | None, control: Control) -> None:
        taken, reason = self._obey(control)
        self._events.write(
            "control_ack",
            step_index=index,
            control_version=control.version,
            control_seq=control.seq,
            action_observed=control.action,
            action_taken=taken,
            reason=reason,
        )
        if taken == "checkpoint" and control.version != self._held:
            # Stand still until the runner has archived and says so; once per request, and never for ever.
            self._held = control.version
            wait_for_change(self.trial.control_path, control.version, HOLD_SECONDS)

    def _obey(self, control: Control) -> tuple[str, str | None]:
        """The action taken, and why it is another than the one asked for."""
        try:
            if control.action == "stop":
                self.stopped = True
                if self.on_stop is not None:
                    self.on_stop()
            elif control.action == "checkpoint" and control.version != self._held:
                for callback in (self.on_pause, self.on_checkpoint):
                    if callback is not None:
                        callback(control.label)
        except Exception as error:  # noqa: BLE001 - a callback's failure must not cost the acknowledgement
            taken = "stop" if self.stopped else "continue"
            return taken, f"the callback failed: {type(error).__name__}: {error}"
        return control.action, None


class _Step:
    """What `Session.step` gives."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> int:
        return self._session._start_step()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._session._end_step(error)
