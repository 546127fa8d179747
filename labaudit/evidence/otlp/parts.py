"""Bytes that claim to be a document to a bound on its parts, before anything is built from them.

Two bytes of protobuf can be a whole message, and `[]` a whole list: eight megabytes of them would become a gigabyte of
objects. So parts are counted on the bytes, and counting stops at the limit.
"""

from __future__ import annotations

from typing import Any

from labaudit.errors import BadInput

MAX_PARTS = 100_000
# So few bytes cannot hold more parts than the limit by much, and most requests are this small.
_SMALL = 1 << 17


class TooManyParts(BadInput):
    """The document may be sound, but is made of more pieces than are taken in here."""


def require_few_json_parts(data: bytes, limit: int = MAX_PARTS) -> None:
    """TooManyParts when objects and arrays, braces inside texts included, are more than `limit`."""
    parts = data.count(b"{") + data.count(b"[")
    if parts > limit:
        raise TooManyParts(f"has {parts} objects and arrays, more than {limit}")


def require_few_protobuf_parts(data: bytes, descriptor: Any, limit: int = MAX_PARTS) -> None:
    """TooManyParts when the message has more than `limit` fields and messages; BadInput when its framing is broken."""
    if len(data) < _SMALL:
        return
    parts = 0
    waiting = [(descriptor, 0, len(data))]
    while waiting:
        kind, place, end = waiting.pop()
        inner = {field.number: field.message_type for field in kind.fields if field.message_type is not None}
        while place < end:
            parts += 1
            if parts > limit:
                raise TooManyParts(f"has more than {limit} fields")
            tag, place = _varint(data, place, end)
            place, length = _value(data, place, end, tag & 7)
            if length and tag >> 3 in inner:
                waiting.append((inner[tag >> 3], place - length, place))


def _value(data: bytes, place: int, end: int, wire_type: int) -> tuple[int, int]:
    """(place after the value, length of a length-delimited one)."""
    length = 0
    if wire_type == 0:
        _, place = _varint(data, place, end)
    elif wire_type == 1:
        place += 8
    elif wire_type == 5:
        place += 4
    elif wire_type == 2:
        length, place = _varint(data, place, end)
        place += length
    else:
        raise BadInput("is no protobuf message")
    if place > end:
        raise BadInput("is no protobuf message: a field runs past its end")
    return place, length


def _varint(data: bytes, place: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while place < end and shift < 70:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
    raise BadInput("is no protobuf message: a number does not end")
