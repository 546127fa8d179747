"""Where a body ends: by length, by chunks, or with the connection. Pure: bytes in, the part that belongs to it out."""

from __future__ import annotations

import re

from .rules import Refused

_SIZE_LINE = re.compile(rb"[0-9A-Fa-f]{1,15}(\r\n?)?")


class Body:
    """Takes bytes and gives back those that belong to the body; `rest` keeps what came after its end."""

    def __init__(self, length: int | None) -> None:
        self.length = length
        self.done = length == 0
        self.rest = b""

    def take(self, data: bytes) -> bytes:
        """The bytes to pass on; Refused if the framing is broken."""
        if self.done:
            self.rest += data
            return b""
        if self.length is None:
            return data
        mine = data[: self.length]
        self.length -= len(mine)
        if self.length == 0:
            self.done, self.rest = True, data[len(mine) :]
        return mine


class ChunkedBody(Body):
    """The same for chunks, strictly: no extensions, no trailers, CRLF only."""

    def __init__(self) -> None:
        super().__init__(None)
        self._left = 0
        self._line = b""
        self._expects = "size"

    def take(self, data: bytes) -> bytes:
        passed = 0
        while passed < len(data) and not self.done:
            passed += self._data(data, passed) if self._expects == "data" else self._one(data[passed : passed + 1])
        if self.done:
            self.rest += data[passed:]
        return data[:passed]

    def _data(self, data: bytes, start: int) -> int:
        size = min(self._left, len(data) - start)
        self._left -= size
        if self._left == 0:
            self._expects = "end"
        return size

    def _one(self, byte: bytes) -> int:
        """One byte of a line: the size line, the line end after a chunk, or the empty line after the last.

        Each byte is checked before it is passed on: a line that goes wrong is cut where it does.
        """
        self._line += byte
        if self._expects == "size":
            if not _SIZE_LINE.fullmatch(self._line):
                raise Refused("bad_chunk", "a chunk's size is not plain hexadecimal", 400)
        elif not b"\r\n".startswith(self._line):
            raise Refused("bad_chunk", "a chunk ends without CRLF, or there are trailers", 400)
        if not self._line.endswith(b"\n"):
            return 1
        line, self._line = self._line, b""
        if self._expects == "size":
            self._left = int(line, 16)
            self._expects = "data" if self._left else "last"
        else:
            self.done = self._expects == "last"
            self._expects = "size"
        return 1


def request_body(length: int | None) -> Body:
    """The body of a request: by length, or chunks for None."""
    return ChunkedBody() if length is None else Body(length)
