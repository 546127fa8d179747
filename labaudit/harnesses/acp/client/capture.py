"""A stream that may never end to its head, its tail, its size and its hash, in flat memory."""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from typing import BinaryIO

from labaudit.core.redaction import Redactor
from labaudit.engines.protocol import CapturedStream

CHUNK = 1 << 16
KEEP = 1 << 18


def read_some(stream: BinaryIO) -> bytes:
    """What is there now, at least one byte; empty at the end or when the stream was closed under us."""
    read = getattr(stream, "read1", None) or stream.read
    try:
        data: bytes | None = read(CHUNK)
    except (OSError, ValueError):
        return b""
    return data or b""


class Capture:
    """Takes bytes in for ever, keeps the first and the last of them."""

    def __init__(self, head: int = KEEP, tail: int = KEEP) -> None:
        self._head_room = head
        self._tail_room = tail
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._hash = hashlib.sha256()
        self._lock = threading.Lock()
        self.total = 0

    def feed(self, chunk: bytes) -> None:
        """Adds bytes."""
        with self._lock:
            self.total += len(chunk)
            self._hash.update(chunk)
            if self._head_room:
                self._head.append(chunk[: self._head_room])
                chunk = chunk[self._head_room :]
                self._head_room -= len(self._head[-1])
            if chunk:
                self._tail.append(chunk)
                self._tail_size += len(chunk)
                while self._tail_size - len(self._tail[0]) >= self._tail_room:
                    self._tail_size -= len(self._tail.popleft())

    def captured(self, redactor: Redactor | None = None) -> CapturedStream:
        """What is kept so far, redacted; size and hash are of the bytes as they came."""
        with self._lock:
            head = b"".join(self._head)
            tail = b"".join(self._tail)[-self._tail_room :]
            total, digest = self.total, self._hash.hexdigest()
        if redactor is None or not redactor.active:
            return CapturedStream(head, tail, total, digest)
        whole = total <= len(head) + len(tail)
        if whole:
            clean = redactor.apply(head + tail).data
            return CapturedStream(clean, b"", len(clean), digest)
        return CapturedStream(redactor.apply(head).data, redactor.apply(tail).data, total, digest)


def drain(stream: BinaryIO, capture: Capture, name: str) -> threading.Thread:
    """A thread that reads `stream` to its end, so that whoever writes it never waits for us."""

    def run() -> None:
        while chunk := read_some(stream):
            capture.feed(chunk)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread
