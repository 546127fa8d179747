"""Chunks of a byte stream to lines, however the chunks fall and however long a line grows.

A line past the limit is not kept: its head, its size and its hash are, so that it is still evidence.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

MAX_LINE = 16 << 20
KEPT_OF_A_LONG_LINE = 64 << 10


@dataclass(frozen=True)
class Frame:
    """One line without its newline."""

    data: bytes
    """All of it, or its head when `cut`."""
    size: int
    cut: bool = False
    sha256: str = ""
    """Of the whole line, only when `cut`."""
    ended: bool = True
    """False when the stream ended before the newline."""


class LineFramer:
    """Feed it bytes, take out lines; blank lines are counted and dropped."""

    def __init__(self, max_line: int = MAX_LINE, keep: int = KEPT_OF_A_LONG_LINE) -> None:
        self._max = max_line
        self._keep = min(keep, max_line)
        self._parts: list[bytes] = []
        self._size = 0
        self._hash: hashlib._Hash | None = None
        self.total = 0
        self.blank = 0

    def feed(self, chunk: bytes) -> list[Frame]:
        """The lines that `chunk` completes."""
        self.total += len(chunk)
        frames: list[Frame] = []
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._take(chunk[start:end])
            self._finish(frames, ended=True)
            start = end + 1
        if start < len(chunk):
            self._take(chunk[start:])
        return frames

    def close(self) -> list[Frame]:
        """What was left when the stream ended without a newline."""
        frames: list[Frame] = []
        if self._size:
            self._finish(frames, ended=False)
        return frames

    def _take(self, part: bytes) -> None:
        self._size += len(part)
        if self._hash is not None:
            self._hash.update(part)
        elif self._size > self._max:
            whole = b"".join([*self._parts, part])
            self._hash = hashlib.sha256(whole)
            self._parts = [whole[: self._keep]]
        elif part:
            self._parts.append(part)

    def _finish(self, frames: list[Frame], *, ended: bool) -> None:
        data, size, hasher = b"".join(self._parts), self._size, self._hash
        self._parts, self._size, self._hash = [], 0, None
        if hasher is not None:
            frames.append(Frame(data, size, cut=True, sha256=hasher.hexdigest(), ended=ended))
        elif data.strip():
            frames.append(Frame(data.removesuffix(b"\r"), size, ended=ended))
        else:
            self.blank += 1
