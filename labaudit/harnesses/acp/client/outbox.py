"""Our lines to the agent's stdin, in order.

A short line goes to a pipe with room at once, by whoever has it to say: a turn of one update is mostly waiting for
threads to be scheduled. Everything else goes by a thread of its own: an agent that does not read its input fills the
pipe, then this thread waits, and nobody else does. What piles up is bounded: an agent that asks and asks without
reading our answers is told nothing more and declared deaf. What the transcript cannot hold is not said at all.
"""

from __future__ import annotations

import os
import queue
import select
import stat
import threading
from collections.abc import Callable
from typing import BinaryIO

from labaudit.harnesses.acp.wire.transcript import Transcript

MAX_PENDING = 48 << 20
# A pipe that is ready takes this much without making the writer wait (pipe(7)); sockets promise nothing of the kind.
AT_ONCE = select.PIPE_BUF


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
        self._pipe = _ready_check(stream)
        self._thread = threading.Thread(target=self._run, name="acp-outbox", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        """Writes or queues a line; past the bound the agent counts as deaf and the line is dropped."""
        with self._lock:
            if self._broken:
                return
            if self._pending + len(line) > self._max:
                self._broken = True
            elif self._pending or len(line) > AT_ONCE or not self._has_room():
                self._pending += len(line)
                self._queue.put(line)
                return
            else:
                # Nothing is queued before it, so the order holds.
                self._broken = not self._say(line)
                if self._transcript.failure is None:
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
            # From here on nobody may write: the descriptor can be another file's by then.
            self._broken = True
        try:
            self._stream.close()
        except OSError:
            return

    def _has_room(self) -> bool:
        return self._pipe is not None and bool(self._pipe.poll(0))

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


def _ready_check(stream: BinaryIO) -> select.poll | None:
    """A look at whether a pipe takes a line now; None for a stream that is no pipe."""
    try:
        descriptor = stream.fileno()
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return None
    except (OSError, ValueError, AttributeError):
        return None
    look = select.poll()
    look.register(descriptor, select.POLLOUT)
    return look
