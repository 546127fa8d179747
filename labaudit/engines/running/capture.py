"""Output streams of a sandbox: everything counted and hashed, head and tail kept, the init's report taken off stderr.

A flood costs no memory beyond head and tail. For a talking harness the same bytes also go into a live pipe.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import deque
from contextlib import suppress

from labaudit.engines.observation.init_script import split_report
from labaudit.engines.result import CapturedStream


class StreamCapture:
    """Takes the bytes of one stream as they come. One writer thread; read after the end."""

    def __init__(self, head_bytes: int, tail_bytes: int, *, expects_report: bool = False, live_fd: int | None = None):
        self._head, self._head_bytes = bytearray(), head_bytes
        self._tail: deque[bytes] = deque()
        self._tail_size, self._tail_bytes = 0, tail_bytes
        self._digest, self._total = hashlib.sha256(), 0
        self._pending: bytes | None = b"" if expects_report else None
        self._live_fd = live_fd
        self.over = False
        """Whether the stream's end was declared; what comes later is nobody's."""
        self.report: bytes | None = None
        self.reported = threading.Event()
        """Set once the init's report is in, or once it is clear that none will come."""
        if not expects_report:
            self.reported.set()

    def feed(self, data: bytes) -> None:
        """The next bytes of the stream."""
        if self._pending is not None:
            report, rest, needs_more = split_report(self._pending + data)
            if needs_more:
                self._pending += data
                return
            self._pending, self.report, data = None, report, rest
            self.reported.set()
        if data:
            self._keep(data)
            self._pass_on(data)

    def finish(self) -> CapturedStream:
        """The stream ended; what it was."""
        self.over = True
        if self._pending:
            data, self._pending = self._pending, None
            self._keep(data)
            self._pass_on(data)
        self._pending = None
        self.reported.set()
        self.close_live()
        tail = b"".join(self._tail)[-self._tail_bytes :] if self._tail_bytes else b""
        return CapturedStream(bytes(self._head), tail, self._total, self._digest.hexdigest())

    def close_live(self) -> None:
        """Ends the live pipe, so that its reader sees the end of the stream."""
        if self._live_fd is not None:
            with suppress(OSError):
                os.close(self._live_fd)
            self._live_fd = None

    def _keep(self, data: bytes) -> None:
        self._total += len(data)
        self._digest.update(data)
        room = self._head_bytes - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail.append(data[-self._tail_bytes :])
        self._tail_size += len(self._tail[-1])
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_bytes:
            self._tail_size -= len(self._tail.popleft())

    def _pass_on(self, data: bytes) -> None:
        view = memoryview(data)
        while self._live_fd is not None and view:
            try:
                view = view[os.write(self._live_fd, view) :]
            except OSError:  # the reader has gone; counting and hashing go on
                self.close_live()


def pump(fd: int, capture: StreamCapture) -> None:
    """Feeds a pipe into a capture until its end, then closes it.

    Only the thread that reads may close: a descriptor closed under it can be another pipe by the next read, and bytes
    of one trial would end in another's log.
    """
    try:
        while (data := os.read(fd, 1 << 16)) and not capture.over:
            capture.feed(data)
    except OSError:
        pass
    finally:
        os.close(fd)
