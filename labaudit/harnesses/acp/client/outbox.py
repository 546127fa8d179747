"""Our lines to the agent's stdin, in order, by a thread of their own.

An agent that does not read its input fills the pipe; then this thread waits, and nobody else does. What piles up is
bounded: an agent that asks and asks without reading our answers is told nothing more and declared deaf. What the
transcript cannot hold is not said at all.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import BinaryIO

from labaudit.harnesses.acp.wire.transcript import Transcript

MAX_PENDING = 48 << 20


class Outbox:
    """The one writer of an agent's stdin."""

    def __init__(
        self, stream: BinaryIO, transcript: Transcript, on_stuck: Callable[[], None], max_pending: int = MAX_PENDING
    ) -> None:
        self._stream = stream
        self._transcript = transcript
        self._on_stuck = on_stuck
        self._max = max_pending
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._pending = 0
        self._lock = threading.Lock()
        self._broken = False
        self._thread = threading.Thread(target=self._run, name="acp-outbox", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        """Queues a line; past the bound the agent counts as deaf and the line is dropped."""
        with self._lock:
            if self._broken:
                return
            if self._pending + len(line) > self._max:
                self._broken = True
            else:
                self._pending += len(line)
                self._queue.put(line)
                return
        self._on_stuck()

    def close(self, wait_s: float = 1.0) -> None:
        """Writes what is queued as far as the agent takes it within `wait_s`, then ends its input."""
        self._queue.put(None)
        self._thread.join(wait_s)

    def _run(self) -> None:
        while (line := self._queue.get()) is not None:
            if not self._say(line):
                break
            with self._lock:
                self._pending -= len(line)
        if self._transcript.failure is not None:
            self._on_stuck()
        with self._lock:
            self._broken = True
        try:
            self._stream.close()
        except OSError:
            return

    def _say(self, line: bytes) -> bool:
        """The transcript first, then the agent; False when it is gone or closed its input: the reading side says so."""
        try:
            self._transcript.sent(line)
            if self._transcript.failure is not None:
                return False
            view = memoryview(line)
            while view:
                view = view[self._stream.write(view) or 0 :]
            self._stream.flush()
        except (OSError, ValueError):
            return False
        return True
