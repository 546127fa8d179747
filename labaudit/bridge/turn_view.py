"""A running turn to messages in a chat: the answer as it grows, the tool calls, and questions with buttons.

What the reading thread reports is only noted here; `flush`, called by the turn's own thread, sends it, and no more
often than the platform bears.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from labaudit.errors import EnvironmentLacks
from labaudit.harnesses.acp.client.turn import ToolCall

MAX_MESSAGE = 4000
SHOWN_TOOLS = 8
TYPING_EVERY_S = 4.0
Buttons = Sequence[tuple[str, str]]


class Undelivered(EnvironmentLacks):
    """The chat platform did not take a message."""


class ChatPort(Protocol):
    """The way out to a chat platform. May be called from any thread; Undelivered when the platform refuses."""

    def send(self, chat_id: int, text: str, buttons: Buttons = ()) -> int:
        """Sends a message with (label, data) buttons; returns its id."""
        ...

    def edit(self, chat_id: int, message_id: int, text: str, buttons: Buttons = ()) -> None:
        """Changes a message."""
        ...

    def typing(self, chat_id: int) -> None:
        """Shows that an answer is on its way."""
        ...


@dataclass
class _Shown:
    """One message that is kept up to date."""

    message_id: int | None = None
    text: str = ""


@dataclass
class TurnView:
    """What people see of one turn."""

    port: ChatPort
    chat_id: int
    edit_every_s: float = 1.0
    undelivered: int = 0
    _parts: list[str] = field(default_factory=list)
    _size: int = 0
    _done_before: int = 0
    """Characters of the answer that stand in earlier, full messages."""
    _tools: dict[str, str] = field(default_factory=dict)
    _notices: list[str] = field(default_factory=list)
    _answer: _Shown = field(default_factory=_Shown)
    _progress: _Shown = field(default_factory=_Shown)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _next_edit: float = 0.0
    _next_typing: float = 0.0

    # --- on the reading thread ---

    def chunk(self, text: str) -> None:
        """A piece of the answer."""
        with self._lock:
            self._parts.append(text)
            self._size += len(text)

    def tool(self, call: ToolCall) -> None:
        """A tool call that is new or changed."""
        with self._lock:
            self._tools.pop(call.call_id, None)
            self._tools[call.call_id] = f"{call.title or call.kind}: {call.status.replace('_', ' ')}"
            while len(self._tools) > SHOWN_TOOLS:
                del self._tools[next(iter(self._tools))]

    def notice(self, text: str) -> None:
        """A message of its own."""
        with self._lock:
            self._notices.append(text[:MAX_MESSAGE])

    # --- on the turn's thread ---

    def flush(self, *, last: bool = False) -> None:
        """Sends what is new, if it is time."""
        now = time.monotonic()
        if not last and now >= self._next_typing:
            self._next_typing = now + TYPING_EVERY_S
            self._try(lambda: self.port.typing(self.chat_id))
        if not last and now < self._next_edit:
            return
        self._next_edit = now + self.edit_every_s
        with self._lock:
            notices, self._notices = self._notices, []
            tools = "\n".join(self._tools.values())[:MAX_MESSAGE]
            answer = "".join(self._parts)
            self._parts = [answer]
        for text in notices:
            self._try(partial(self.port.send, self.chat_id, text))
        if tools:
            self._show(self._progress, tools)
        self._show_answer(answer)

    def _show_answer(self, answer: str) -> None:
        while len(answer) - self._done_before > MAX_MESSAGE:
            self._show(self._answer, answer[self._done_before : self._done_before + MAX_MESSAGE])
            self._done_before += MAX_MESSAGE
            self._answer = _Shown()
        rest = answer[self._done_before :]
        if rest.strip():
            self._show(self._answer, rest)

    def _show(self, shown: _Shown, text: str) -> None:
        if text == shown.text:
            return

        def deliver() -> None:
            if shown.message_id is None:
                shown.message_id = self.port.send(self.chat_id, text)
            else:
                self.port.edit(self.chat_id, shown.message_id, text)
            shown.text = text

        self._try(deliver)

    def _try(self, action: Callable[[], object]) -> None:
        try:
            action()
        except Undelivered:
            # The record has the answer; a chat that cannot be reached must not end the agent's turn.
            self.undelivered += 1
