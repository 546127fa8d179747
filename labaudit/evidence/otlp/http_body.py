"""A request's headers and stream to its body: by length or in chunks, gzip undone, never more than allowed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import BinaryIO, Protocol

PIECE = 1 << 16
MAX_CHUNK_LINE = 128


class Headers(Protocol):
    """What is needed of a header table."""

    def get(self, name: str, default: str = "") -> str:
        """The value of a header, case-insensitive."""
        ...


class Refused(Exception):
    """A request that is not taken; `status` is what its sender is told."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(what)
        self.status = status
        self.what = what


def read_body(headers: Headers, stream: BinaryIO, max_bytes: int) -> bytes:
    """The decoded body of at most `max_bytes`, or Refused; both the sent and the unpacked size are bounded."""
    pieces = _decoded(headers.get("Content-Encoding", ""), _sent(headers, stream, max_bytes))
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > max_bytes:
            raise Refused(413, f"the body has more than {max_bytes} bytes")
    return bytes(body)


def _sent(headers: Headers, stream: BinaryIO, max_bytes: int) -> Iterator[bytes]:
    if headers.get("Transfer-Encoding", "").lower() == "chunked":
        yield from _chunks(stream, max_bytes)
        return
    text = headers.get("Content-Length", "")
    if not (text.isascii() and text.isdigit()):
        raise Refused(411, "the request says neither Content-Length nor chunked")
    left = int(text[:20])
    if left > max_bytes:
        raise Refused(413, f"the body has more than {max_bytes} bytes")
    while left:
        piece = stream.read(min(PIECE, left))
        if not piece:
            raise Refused(400, "the body ends early")
        left -= len(piece)
        yield piece


def _chunks(stream: BinaryIO, max_bytes: int) -> Iterator[bytes]:
    total = 0
    while True:
        line = stream.readline(MAX_CHUNK_LINE)
        try:
            size = int(line.split(b";", 1)[0].strip(), 16)
        except ValueError as error:
            raise Refused(400, "a chunk has no size") from error
        total += size
        if size < 0 or total > max_bytes:
            raise Refused(413, f"the body has more than {max_bytes} bytes")
        if size == 0:
            while stream.readline(MAX_CHUNK_LINE).strip():
                pass
            return
        data = stream.read(size)
        if len(data) != size or stream.read(2) != b"\r\n":
            raise Refused(400, "a chunk ends early")
        yield data


def _decoded(encoding: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
    name = encoding.strip().lower()
    if name in ("", "identity"):
        yield from pieces
    elif name in ("gzip", "x-gzip", "deflate"):
        yield from _inflated(pieces, wbits=31 if "gzip" in name else 15)
    else:
        raise Refused(415, f"the encoding {name[:40]} is not understood")


def _inflated(pieces: Iterator[bytes], wbits: int) -> Iterator[bytes]:
    inflate = zlib.decompressobj(wbits)
    try:
        for piece in pieces:
            # Unpacked in small steps: a bomb is noticed by the caller after the first step too many.
            rest = piece
            while rest and not inflate.eof:
                yield inflate.decompress(rest, PIECE)
                rest = inflate.unconsumed_tail
    except zlib.error as error:
        raise Refused(400, f"the body cannot be unpacked: {error}") from error
    if not inflate.eof:
        raise Refused(400, "the packed body ends early")
