"""One session with an agent: prompts out, chunks and tool calls in, one turn at a time.

Callbacks run on the reading thread, in the order of the lines; `seq` is then the transcript's number of the line.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from labaudit.errors import BadInput
from labaudit.harnesses.acp.client.connection import Result
from labaudit.harnesses.acp.client.failures import AgentFailure
from labaudit.harnesses.acp.client.permissions import PermissionAsk
from labaudit.harnesses.acp.client.settings import Setting, Standing
from labaudit.harnesses.acp.client.turn import STOP_REASONS, ToolCall, Turn, TurnResult
from labaudit.harnesses.acp.wire import dialect as wire
from labaudit.harnesses.acp.wire import extensions, updates
from labaudit.harnesses.acp.wire.text import text_at

Callback = Callable[[Any], None]
EVENTS = (
    "chunk", "thought", "tool_call", "tool_update", "tool_end", "turn_end", "commands_available",
    "compaction_status", "mcp_event", "plan", "usage", "terminated", "cleared", "permission",
)  # fmt: skip


class SessionClient(Protocol):
    """What a session needs of its client."""

    @property
    def dialect(self) -> wire.Dialect: ...
    def attach(self, session: ACPSession) -> None: ...
    def send_prompt(self, session_id: str, content: Sequence[Mapping[str, object]]) -> None: ...
    def cancel(self, session_id: str) -> None: ...
    def set_mode(self, session_id: str, mode: str) -> Setting: ...
    def set_model(self, session_id: str, model: str) -> Setting: ...
    def prompt_capability(self, name: str) -> bool: ...
    def answer_pending(self, session_id: str, reason: str) -> None: ...
    def look_for_the_end(self) -> None: ...
    def note(self, kind: str, detail: str = "", about: int | None = None) -> None: ...


class ACPSession:
    """A session known by its id."""

    def __init__(self, session_id: str, client: SessionClient) -> None:
        self.session_id = session_id
        self.client = client
        self.seq = 0
        self.standing = Standing()
        self.commands: tuple[updates.Command, ...] = ()
        self.cost: updates.UsageNow | None = None
        self.replaying = False
        self.replayed = 0
        self.late_updates = 0
        self.terminated: str | None = None
        self._callbacks: dict[str, list[Callback]] = {name: [] for name in EVENTS}
        self._lock = threading.Lock()
        self._turn: Turn | None = None
        self._result: TurnResult | None = None
        self._ended = threading.Event()
        client.attach(self)

    # --- what the seed calls for ---

    def send_message(self, text: str) -> None:
        """Starts a turn with this text; `on_turn_end` or `wait_turn` tell how it ended."""
        self.client.send_prompt(self.session_id, [wire.text_block(text)])

    def send_image(self, path: str, caption: str = "") -> None:
        """Starts a turn with an image, if the agent takes images."""
        if not self.client.prompt_capability("image"):
            raise AgentFailure("not_advertised", "the agent takes no images", hint="it did not advertise them")
        blocks = [wire.image_block(self.client.dialect, Path(path))]
        self.client.send_prompt(self.session_id, [wire.text_block(caption), *blocks] if caption else blocks)

    def cancel(self) -> None:
        """Asks the agent to end the turn; its open permission requests are answered `cancelled`."""
        self.client.cancel(self.session_id)

    def set_mode(self, mode: str) -> Setting:
        """Asks for a mode."""
        return self.client.set_mode(self.session_id, mode)

    def set_model(self, model: str) -> Setting:
        """Asks for a model."""
        return self.client.set_model(self.session_id, model)

    def on_chunk(self, callback: Callback) -> None:
        """Called with each Chunk of the agent's answer."""
        self.on("chunk", callback)

    def on_tool_call(self, callback: Callback) -> None:
        """Called with the ToolCall when it is first seen."""
        self.on("tool_call", callback)

    def on_tool_update(self, callback: Callback) -> None:
        """Called with the ToolCall at every later change."""
        self.on("tool_update", callback)

    def on_turn_end(self, callback: Callback) -> None:
        """Called with the TurnResult."""
        self.on("turn_end", callback)

    def on_commands_available(self, callback: Callback) -> None:
        """Called with the tuple of slash commands."""
        self.on("commands_available", callback)

    def on_compaction_status(self, callback: Callback) -> None:
        """Called with the CompactionStatus."""
        self.on("compaction_status", callback)

    def on_mcp_event(self, callback: Callback) -> None:
        """Called with the McpEvent."""
        self.on("mcp_event", callback)

    def on(self, event: str, callback: Callback) -> None:
        """Any event of EVENTS."""
        if event not in self._callbacks:
            raise BadInput(f"a session has no event {event!r}", hint=f"known: {', '.join(EVENTS)}")
        self._callbacks[event].append(callback)

    # --- turns ---

    @property
    def in_turn(self) -> bool:
        """True between a prompt and its end."""
        return self._turn is not None

    @property
    def text(self) -> str:
        """The answer of the running or the last turn."""
        turn = self._turn
        if turn is not None:
            return turn.text
        return self._result.text if self._result else ""

    def wait_turn(self, timeout_s: float) -> TurnResult | None:
        """The turn's result, or None when it still runs after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while not self._ended.wait(max(0.0, min(0.5, deadline - time.monotonic()))):
            self.client.look_for_the_end()
            if time.monotonic() >= deadline:
                return self._result if self._ended.is_set() else None
        return self._result

    def begin_turn(self, send: Callable[[Callable[[Result], None]], None]) -> None:
        """Marks the turn as running, then sends; a second one at the same time is BadInput."""
        turn = Turn()
        with self._lock:
            if self._turn is not None:
                raise BadInput("a turn is running", where=self.session_id, hint="wait for its end, or cancel it")
            self._turn = turn
            self._result = None
            self._ended.clear()
        try:
            send(lambda future: self._settled(turn, future))
        except AgentFailure as failure:
            self._end(turn, None, failure)

    def abandon_turn(self, failure: AgentFailure) -> TurnResult:
        """Ends the running turn on our side because the agent does not; a late answer no longer counts."""
        turn = self._turn
        if turn is not None:
            self._end(turn, None, failure)
        with self._lock:
            if self._result is None:
                raise BadInput("there was no turn to end", where=self.session_id)
            return self._result

    def _settled(self, turn: Turn, future: Result) -> None:
        error = future.exception()
        if error is not None:
            failure = error if isinstance(error, AgentFailure) else AgentFailure("bad_answer", str(error))
            self._end(turn, None, failure)
            return
        reason = text_at(future.result(), "stopReason", limit=80)
        if reason in STOP_REASONS:
            self._end(turn, reason, None)
        else:
            what = f"the agent ended the turn with stopReason {reason!r}" if reason else "the answer has no stopReason"
            self._end(turn, None, AgentFailure("bad_answer", what))

    def _end(self, turn: Turn, stop_reason: str | None, failure: AgentFailure | None) -> None:
        with self._lock:
            if self._turn is not turn:
                return
            self._turn = None
            result = self._result = turn.result(stop_reason, failure)
        self.client.answer_pending(self.session_id, "the turn ended")
        try:
            self._tell("turn_end", result)
        finally:
            self._ended.set()

    # --- what the client routes here, on the reading thread ---

    def take_update(self, update: updates.Update, seq: int) -> None:
        """One `session/update`."""
        self.seq = seq
        if self.replaying:
            self.replayed += 1
            return
        if self._take_state(update):
            return
        turn = self._turn
        if turn is None:
            self.late_updates += 1
            self.client.note("update_outside_a_turn", type(update).__name__, seq)
            return
        turn.updates += 1
        if isinstance(update, updates.Chunk):
            self._take_chunk(turn, update)
        elif isinstance(update, updates.ToolNews):
            self.take_tool(update, seq)
        elif isinstance(update, updates.TurnEnd):
            turn.turn_end_noted = True
        elif isinstance(update, updates.Plan):
            self._tell("plan", update)
        else:
            self.client.note("unknown_update", getattr(update, "name", ""), seq)

    def take_extension(self, extension: extensions.Extension, seq: int) -> None:
        """One `_kiro.dev/*` notification."""
        self.seq = seq
        if isinstance(extension, extensions.CommandsAvailable):
            self.commands = extension.commands
            self._tell("commands_available", extension.commands)
        elif isinstance(extension, extensions.CompactionStatus):
            self._tell("compaction_status", extension)
        elif isinstance(extension, extensions.ClearStatus):
            self._tell("cleared", extension)
        elif isinstance(extension, extensions.McpEvent):
            self._tell("mcp_event", extension)
        elif isinstance(extension, extensions.SessionTerminated):
            self.terminated = extension.reason or "terminated by the agent"
            self._tell("terminated", extension)

    def take_tool(self, news: updates.ToolNews, seq: int) -> ToolCall | None:
        """News of a tool call, from an update or a permission request."""
        turn = self._turn
        if turn is None:
            return None
        known = news.call_id in turn.calls
        call, ended = turn.add_tool(news, seq)
        if call is None:
            self.client.note("update_of_an_ended_call", news.call_id, seq)
            return None
        self._tell("tool_update" if known else "tool_call", call)
        if ended:
            self._tell("tool_end", call)
        return call

    def tell_permission(self, ask: PermissionAsk) -> None:
        """A permission request was answered."""
        self._tell("permission", ask)

    def _take_state(self, update: updates.Update) -> bool:
        if isinstance(update, updates.Commands):
            self.commands = update.commands
            self._tell("commands_available", update.commands)
        elif isinstance(update, updates.ModeNow):
            self.standing.take_mode(update)
        elif isinstance(update, updates.OptionsNow):
            self.standing.take_options(update)
        elif isinstance(update, updates.UsageNow):
            self.cost = update
            self._tell("usage", update)
        else:
            return False
        return True

    def _take_chunk(self, turn: Turn, chunk: updates.Chunk) -> None:
        if chunk.voice == "agent":
            kept = turn.add_text(chunk)
            self._tell("chunk", updates.Chunk("agent", kept, chunk.content_type))
        elif chunk.voice == "thought":
            self._tell("thought", chunk)

    def _tell(self, event: str, value: object) -> None:
        for callback in self._callbacks[event]:
            callback(value)

