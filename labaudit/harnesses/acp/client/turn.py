"""One prompt's turn as a value that grows: the agent's text, its tool calls, and how it ended."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from labaudit.harnesses.acp.client.failures import AgentFailure
from labaudit.harnesses.acp.wire.text import fit
from labaudit.harnesses.acp.wire.updates import TERMINAL, Chunk, Status, ToolNews

MAX_ANSWER = 4 << 20
MAX_CALLS = 100_000
MAX_PARTS = 4096
STOP_REASONS = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")


@dataclass
class ToolCall:
    """What is known of one tool call; it may first be seen in a permission request or an update."""

    call_id: str
    title: str = ""
    kind: str = "other"
    kinds: set[str] = field(default_factory=set)
    status: Status = "pending"
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    refused: bool = False
    seq: int = 0

    @property
    def duration_ms(self) -> int:
        """Between its first and its last sign, by our clock."""
        return max(0, round(((self.ended or time.monotonic()) - self.started) * 1000))


@dataclass(frozen=True)
class TurnResult:
    """How a turn ended. `failure` is None exactly when the agent answered the prompt."""

    stop_reason: str | None
    failure: AgentFailure | None
    text: str
    text_cut: bool
    updates: int
    tool_calls: int
    unfinished: tuple[ToolCall, ...]
    turn_end_noted: bool


class Turn:
    """The state of a running turn. All methods run on the reading thread but for `result`."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0
        self.text_cut = False
        self.updates = 0
        self.turn_end_noted = False
        self.cancelled = False
        self.calls: dict[str, ToolCall] = {}
        """Open calls only; a finished one leaves its id in `finished`."""
        self.finished: set[str] = set()

    def add_text(self, chunk: Chunk) -> str:
        """Takes in a piece of the answer; returns what of it was kept."""
        text = fit(chunk.text, MAX_ANSWER)
        room = MAX_ANSWER - self._size
        if len(text) > room:
            text, self.text_cut = text[:room], True
        if text:
            self._parts.append(text)
            self._size += len(text)
            if len(self._parts) > MAX_PARTS:
                # Many small texts cost ten times their length.
                self._parts = ["".join(self._parts)]
        return text

    @property
    def text(self) -> str:
        """The answer so far."""
        return "".join(self._parts)

    def add_tool(self, news: ToolNews, seq: int) -> tuple[ToolCall | None, bool]:
        """The call that the news is about, and whether it ended by it; None when it had ended before."""
        if news.call_id in self.finished:
            return None, False
        call = self.calls.get(news.call_id)
        if call is None:
            if len(self.calls) + len(self.finished) >= MAX_CALLS:
                return None, False
            call = self.calls[news.call_id] = ToolCall(news.call_id)
        call.seq = seq
        if news.title:
            call.title = news.title
        if news.kind:
            call.kind = news.kind
            call.kinds.add(news.kind)
        if news.status:
            call.status = news.status
        if call.status in TERMINAL:
            call.ended = time.monotonic()
            del self.calls[news.call_id]
            self.finished.add(news.call_id)
            return call, True
        return call, False

    def result(self, stop_reason: str | None, failure: AgentFailure | None) -> TurnResult:
        """The turn as it stands, ended."""
        return TurnResult(
            stop_reason=stop_reason,
            failure=failure,
            text=self.text,
            text_cut=self.text_cut,
            updates=self.updates,
            tool_calls=len(self.finished) + len(self.calls),
            unfinished=tuple(self.calls.values()),
            turn_end_noted=self.turn_end_noted,
        )
