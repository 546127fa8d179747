"""A conversation to `harness_events.jsonl`, written by the bridge where the agent cannot reach it.

One prompt turn is one step. A tool call's end is `tool_call_end`; there is never a `model_call_end`, because ACP shows
none of the model calls behind a turn. Every event carries `ext.origin = "acp_bridge"`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path

from labaudit.core.canonical import canonical_bytes
from labaudit.core.clock import Clock, rfc3339
from labaudit.core.redaction import Redactor
from labaudit.harnesses.acp.client.failures import AgentFailure
from labaudit.harnesses.acp.client.turn import ToolCall
from labaudit.harnesses.acp.wire.text import fit
from labaudit.store import atomic

ORIGIN = "acp_bridge"
STEP_SEMANTICS = "acp_prompt_turn"
MAX_TOOL_EVENTS = 100_000


class HookStream:
    """The one writer of a trial's hook events; safe to call from the reading thread and the driving one."""

    def __init__(self, path: Path, ids: Mapping[str, object], *, clock: Clock, redactor: Redactor) -> None:
        self._ids = dict(ids)
        self._clock = clock
        self._redactor = redactor
        self._lock = threading.Lock()
        self._seq = 0
        self._step: int | None = None
        self.steps = 0
        self.tool_calls = 0
        self.dropped = 0
        """Events that came when no step was open, or past the bound."""
        try:
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise atomic.explain(error, path) from error

    def header(self, manifest_digest: str) -> None:
        """The first line, equal to the manifest."""
        with self._lock:
            self._write(
                "hooks.header",
                hooks_schema_version="hook_events_v1",
                step_semantics=STEP_SEMANTICS,
                integration_level="cli_events",
                manifest_digest=manifest_digest,
            )

    def step_start(self) -> int:
        """A prompt is about to be sent; returns the step's index."""
        with self._lock:
            self._step = self.steps
            self.steps += 1
            self._write("agent_step_start", step_index=self._step)
            return self._step

    def step_end(self) -> None:
        """The turn is over, by answer, error, end or timeout."""
        with self._lock:
            step, self._step = self._step, None
            if step is not None:
                spent = {"steps": self.steps, "tool_calls": self.tool_calls}
                self._write("agent_step_end", step_index=step, budgets=spent)

    def control_ack(self, step: int, control: tuple[str, str, str | None], taken: str | None, reason: str = "") -> None:
        """What the control file said when the turn was over."""
        version, action, _ = control
        fields: dict[str, object] = {"step_index": step, "control_version": version, "action_observed": action}
        if taken is not None:
            fields["action_taken"] = taken
        if reason:
            fields["reason"] = reason
        with self._lock:
            self._write("control_ack", **fields)

    def tool_end(self, call: ToolCall, *, unfinished: bool = False, permission: str | None = None) -> None:
        """A tool call reached its terminal status, or the turn ended before it did."""
        outcome: dict[str, object] = {"status": "ok"}
        if unfinished:
            message = f"left {call.status} at the turn's end"
            outcome = {"status": "error", "error_type": "unfinished", "message": message}
        elif call.status == "failed":
            outcome = {"status": "error", "error_type": "refused" if call.refused else "failed"}
        extra: dict[str, object] = {"transcript_seq": call.seq}
        if call.title:
            extra["title"] = self._redactor.text(call.title)
        if permission is not None:
            extra["permission"] = permission
        with self._lock:
            if self._step is None or self.tool_calls >= MAX_TOOL_EVENTS:
                self.dropped += 1
                return
            self.tool_calls += 1
            self._write(
                "tool_call_end",
                extra,
                step_index=self._step,
                call_id=self._redactor.text(call.call_id) or "withheld",
                tool={"name": f"acp:{call.kind}"},
                timing={"duration_ms": call.duration_ms},
                outcome=outcome,
            )

    def error(self, failure: AgentFailure) -> None:
        """The agent failed, inside a step or before the first."""
        with self._lock:
            message = self._redactor.text(fit(failure.what)) or failure.kind
            self._write("error", step_index=self._step, error_type=failure.kind, message=message)

    def close(self) -> None:
        """On the disk."""
        with self._lock:
            if not self._file.closed:
                os.fsync(self._file.fileno())
                self._file.close()

    def _write(self, event_type: str, extra: Mapping[str, object] | None = None, /, **fields: object) -> None:
        if self._file.closed:
            self.dropped += 1
            return
        event = {
            "event_type": event_type,
            "ts": rfc3339(self._clock.now()),
            "seq": self._seq,
            "ids": self._ids,
            "ext": {"origin": ORIGIN, **(extra or {})},
            **fields,
        }
        self._seq += 1
        self._file.write(canonical_bytes(event) + b"\n")
