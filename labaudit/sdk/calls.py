"""A call that leaves the harness to its hook event, its recorded boundary, and its answer (live or replayed)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from .boundaries import BoundaryReplay, BoundaryWriter
from .canonical import canonical_json, digest_of
from .errors import BoundaryError, NotRecordable
from .events import EventWriter
from .manifest import BOUNDARIES
from .trial import REPLAY_VARIABLE, UNTIL_VARIABLE, Trial


class Caller:
    """Wraps model calls, tool calls and values of one session."""

    def __init__(self, trial: Trial, events: EventWriter, lock: Any, *, record: bool) -> None:
        self._events = events
        self._lock = lock
        self._writer = BoundaryWriter(trial.in_out(BOUNDARIES), trial.ids) if record else None
        replay = os.environ.get(REPLAY_VARIABLE) if record else None
        until = os.environ.get(UNTIL_VARIABLE)
        self._replay = BoundaryReplay(replay, int(until) if until else None) if replay else None
        self._turns = self._tools = self._values = 0
        self._tokens = {"tokens_in": 0, "tokens_out": 0}

    def model(
        self,
        name: str,
        request: Any,
        call: Callable[[Any], Any],
        *,
        step_index: int | None,
        params: Any = None,
        usage: dict[str, int] | Callable[[Any], dict[str, int]] | None = None,
        call_id: str | None = None,
    ) -> Any:
        """One model call. `usage` gives tokens_in and tokens_out, or finds them in the response."""
        with self._lock:
            turn = self._turns
            self._turns += 1
            ident = call_id or f"model-{turn}"
            started = time.monotonic()
            result, failure = self._make("model", name, request, call, step_index)
            spent = None if failure else _usage(usage, result["response"])
            for key, count in (spent or {}).items():
                self._tokens[key] = self._tokens.get(key, 0) + count
            model = {"identity": name}
            if params is not None:
                model["params_digest"] = digest_of(params)
            self._events.write(
                "model_call_end",
                step_index=step_index,
                call_id=ident,
                turn_index=turn,
                model=model,
                usage=spent,
                timing={"duration_ms": int((time.monotonic() - started) * 1000)},
                outcome=_outcome(result),
            )
            return self._give("model", name, ident, step_index, request, result, failure)

    def tool(
        self,
        name: str,
        request: Any,
        call: Callable[[Any], Any],
        *,
        step_index: int | None,
        version: str | None = None,
        call_id: str | None = None,
    ) -> Any:
        """One tool call."""
        with self._lock:
            ident = call_id or f"tool-{self._tools}"
            self._tools += 1
            started = time.monotonic()
            result, failure = self._make("tool", name, request, call, step_index)
            self._events.write(
                "tool_call_end",
                step_index=step_index,
                call_id=ident,
                tool={"name": name} if version is None else {"name": name, "version": version},
                timing={"duration_ms": int((time.monotonic() - started) * 1000)},
                outcome=_outcome(result),
            )
            return self._give("tool", name, ident, step_index, request, result, failure)

    def value(self, name: str, call: Callable[[], Any], *, step_index: int | None) -> Any:
        """One value from outside; it has no hook event."""
        with self._lock:
            ident = f"value-{self._values}"
            self._values += 1
            result, failure = self._make("value", name, None, lambda _: call(), step_index)
            return self._give("value", name, ident, step_index, None, result, failure)

    def spent(self, steps: int) -> dict[str, int]:
        """Budgets used so far, for agent_step_end."""
        return {"steps": steps, "tool_calls": self._tools, **self._tokens}

    @property
    def left(self) -> int:
        """Recorded boundaries that a replay has not met."""
        return self._replay.left if self._replay is not None else 0

    @property
    def made(self) -> int:
        """Calls and values so far."""
        return self._turns + self._tools + self._values

    def close(self) -> None:
        """Ends the record."""
        with self._lock:
            if self._writer is not None:
                self._writer.close()

    def _make(
        self, kind: str, name: str, request: Any, call: Callable[[Any], Any], step_index: int | None
    ) -> tuple[dict[str, Any], Exception | None]:
        """({"response": ...} or {"error": ...}, the exception to raise). A replay that diverges raises at once."""
        try:
            canonical_json(request)
        except (TypeError, ValueError) as error:
            raise NotRecordable(f"the request of {kind} {name!r}: {error}") from error
        if self._replay is not None and self._replay.covers(step_index):
            result = self._replay.answer(kind, name, request)
            failure = BoundaryError(**result["error"]) if "error" in result else None
            return result, failure
        try:
            response = call(request)
        except Exception as error:  # noqa: BLE001 - whatever a call raises is its result
            told = {"kind": type(error).__name__, "message": str(error)}
            failed = BoundaryError(**told)
            failed.__cause__ = error
            return {"error": told}, failed
        try:
            canonical_json(response)
        except (TypeError, ValueError) as error:
            told = {"kind": NotRecordable.error_type, "message": str(error)}
            return {"error": told}, NotRecordable(f"the response of {kind} {name!r}: {error}")
        return {"response": response}, None

    def _give(
        self,
        kind: str,
        name: str,
        call_id: str,
        step_index: int | None,
        request: Any,
        result: dict[str, Any],
        failure: Exception | None,
    ) -> Any:
        if self._writer is not None:
            self._writer.write(kind, name, call_id, step_index, request, result)
        if failure is not None:
            raise failure
        return result["response"]


def _outcome(result: dict[str, Any]) -> dict[str, str]:
    if "response" in result:
        return {"status": "ok"}
    return {"status": "error", "error_type": result["error"]["kind"], "message": result["error"]["message"]}


def _usage(usage: Any, response: Any) -> dict[str, int] | None:
    found = usage(response) if callable(usage) else usage
    if found is None and isinstance(response, dict):
        found = response.get("usage")
    if not isinstance(found, dict):
        return None
    kept = {key: found[key] for key in ("tokens_in", "tokens_out") if isinstance(found.get(key), int)}
    return kept or None
