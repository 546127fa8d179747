"""Agents that only print text: a line in, words out until the next prompt, the end, or the timeout.

There is no structure to observe here: no tool calls, no turns, no stop reason. What comes of it is graded `cli_basic`.
Questions for leave to use a tool are answered with no, and noted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from labaudit.harnesses.acp.client.capture import Capture, drain, read_some
from labaudit.harnesses.acp.client.link import AgentLink
from labaudit.harnesses.acp.client.outbox import Outbox
from labaudit.harnesses.acp.client.turn import MAX_ANSWER
from labaudit.harnesses.acp.wire import plain_text
from labaudit.harnesses.acp.wire.framing import LineFramer
from labaudit.harnesses.acp.wire.text import fit
from labaudit.harnesses.acp.wire.transcript import Transcript

EndedBy = Literal["prompt", "exit", "timeout", "cancelled"]
QUIET_S = 0.3
MAX_TRUST_ANSWERS = 100


@dataclass(frozen=True)
class TextTurn:
    """What an agent printed for one line."""

    text: str
    ended_by: EndedBy
    denied: int
    cut: bool


class TextAgent:
    """One agent in text mode."""

    def __init__(self, link: AgentLink, *, transcript: Transcript | None = None, quiet_s: float = QUIET_S) -> None:
        self._link = link
        self._transcript = transcript or Transcript(None)
        self._quiet_s = quiet_s
        self._lock = threading.Lock()
        self._buffer = bytearray()
        self._cut = False
        self._last_byte = time.monotonic()
        self._ended = False
        self.stderr = Capture()
        streams = link.open()
        self._outbox = Outbox(streams.stdin, self._transcript, lambda: None)
        self._reader = threading.Thread(target=self._read, args=(streams.stdout,), name="text-reader", daemon=True)
        self._reader.start()
        drain(streams.stderr, self.stderr, "text-stderr")

    def wait_ready(self, timeout_s: float) -> bool:
        """Waits for the first prompt; an agent that shows none is ready all the same."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and not self._ended:
            if self._at_prompt():
                return True
            time.sleep(0.05)
        return False

    def ask(
        self, text: str, timeout_s: float, *, last: bool = False, poll: Callable[[], str | None] = lambda: None
    ) -> TextTurn:
        """Sends one line (newlines inside become spaces) and gathers the answer; `last` ends the agent's input."""
        with self._lock:
            self._buffer.clear()
            self._cut = False
        self._outbox.put((" ".join(text.splitlines()) + "\n").encode("utf-8", "replace"))
        if last:
            self._outbox.close(0.0)
        deadline, denied = time.monotonic() + timeout_s, 0
        while time.monotonic() < deadline:
            self._transcript.check()
            if self._ended:
                return self._turn("exit", denied)
            if self._at_prompt():
                return self._turn("prompt", denied)
            if denied < MAX_TRUST_ANSWERS and self._asks_for_trust():
                denied += 1
                self._transcript.note("trust_question_denied", self._words()[-200:])
                self._outbox.put(b"n\n")
            if poll() is not None:
                return self._turn("cancelled", denied)
            time.sleep(0.05)
        return self._turn("timeout", denied)

    def failed_ending(self, within_s: float = 1.0) -> str:
        """How the agent ended (`exit code 3`, `signal 9`) when it ended badly; empty when it did not, or still runs."""
        deadline = time.monotonic() + within_s
        # A pipe closes a moment before its process can be seen to have ended.
        while self._ended and self._link.running() and time.monotonic() < deadline:
            time.sleep(0.02)
        ending = self._link.ending()
        return "" if ending == "exit code 0" else ending

    @property
    def ended(self) -> bool:
        """Whether the agent has closed its output."""
        return self._ended

    def close(self, grace_s: float = 1.0) -> None:
        """Ends the agent."""
        self._outbox.close()
        self._link.stop(grace_s)
        self._reader.join(1.0)
        self._transcript.close()

    def _words(self) -> str:
        with self._lock:
            return plain_text.plain(bytes(self._buffer).decode("utf-8", "replace"))

    def _quiet(self) -> bool:
        return bool(self._buffer) and time.monotonic() - self._last_byte >= self._quiet_s

    def _at_prompt(self) -> bool:
        return self._quiet() and plain_text.ends_in_prompt(self._words())

    def _asks_for_trust(self) -> bool:
        if not (self._quiet() and plain_text.ends_in_trust_question(self._words())):
            return False
        with self._lock:
            self._buffer += b"\n"
        return True

    def _turn(self, ended_by: EndedBy, denied: int) -> TextTurn:
        return TextTurn(fit(plain_text.without_prompt(self._words()), MAX_ANSWER), ended_by, denied, self._cut)

    def _read(self, stream: object) -> None:
        framer = LineFramer()
        while chunk := read_some(stream):  # type: ignore[arg-type]
            for frame in framer.feed(chunk):
                self._transcript.received(frame)
            with self._lock:
                room = MAX_ANSWER - len(self._buffer)
                self._cut = self._cut or len(chunk) > room
                self._buffer += chunk[: max(0, room)]
                self._last_byte = time.monotonic()
        for frame in framer.close():
            self._transcript.received(frame)
        self._ended = True
