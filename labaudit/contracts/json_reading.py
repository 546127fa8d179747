"""Bytes to a JSON value together with what a plain reader loses on the way.

Two questions of the contracts need more than a value or an error: which keys stood twice in one object (the last one
wins, as in most readers), and whether refused bytes are no JSON at all or JSON that no double, string or stack can
hold. orjson reads, and its strictness is that of RFC 8259; the slow path runs only when something is odd.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal, NoReturn

import orjson

MAX_DEPTH = 128


@dataclass(frozen=True, slots=True)
class Reading:
    """A JSON value, and the keys that stood more than once in one of its objects."""

    value: object
    duplicate_keys: tuple[str, ...] = ()


class Unreadable(ValueError):
    """The bytes give no value: `cause` is `syntax` when they are no JSON at all, else what cannot be held."""

    def __init__(self, cause: Literal["syntax", "number", "text", "depth"], reason: str) -> None:
        super().__init__(reason)
        self.cause = cause
        self.reason = reason

    @property
    def is_json(self) -> bool:
        """True for JSON that no double, string or stack can hold."""
        return self.cause != "syntax"


def read_json(data: bytes, *, max_depth: int = MAX_DEPTH) -> Reading:
    """The one value in `data`; integers beyond 64 bits are doubles, nesting past `max_depth` is Unreadable."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise _why_refused(data, error) from error
    # A tree of n containers is at most n + 1 levels deep: most documents need no walk.
    containers = data.count(b"{") + data.count(b"[")
    if containers >= max_depth and deeper_than(value, max_depth):
        raise Unreadable("depth", f"nests deeper than {max_depth} levels")
    if _has_each_key_once(data, value):
        return Reading(value)
    return Reading(value, _duplicate_keys(data))


def deeper_than(value: object, limit: int) -> bool:
    """True when some value stands deeper than `limit` levels; the outermost one is at level 1."""
    if limit < 1:
        return True
    level = [value] if isinstance(value, dict | list) else []
    depth = 1
    while level:
        if depth + 1 > limit and any(level):
            return True
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, dict | list)
        ]
        depth += 1
    return False


def longer_array_than(value: object, limit: int) -> bool:
    """True when some array of the tree has more than `limit` items."""
    waiting = [value]
    while waiting:
        container = waiting.pop()
        if isinstance(container, list):
            if len(container) > limit:
                return True
            waiting.extend(item for item in container if isinstance(item, dict | list))
        elif isinstance(container, dict):
            waiting.extend(item for item in container.values() if isinstance(item, dict | list))
    return False


def _has_each_key_once(data: bytes, value: object) -> bool:
    # Without escapes, every string has the same bytes in `data` and written again, so the number of colons can differ
    # only by pairs that the reader dropped, and each dropped pair has at least one.
    return b"\\" not in data and data.count(b":") == orjson.dumps(value).count(b":")


def _duplicate_keys(data: bytes) -> tuple[str, ...]:
    found: dict[str, None] = {}

    def note_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
        result = dict(pairs)
        if len(result) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    found[key] = None
                seen.add(key)
        return result

    # orjson has read these bytes already; only the pairs matter here, so numbers stay text.
    json.loads(data, object_pairs_hook=note_duplicates, parse_int=str, parse_float=str)
    return tuple(sorted(found))


def _why_refused(data: bytes, error: orjson.JSONDecodeError) -> Unreadable:
    if "depth" in error.msg:
        return Unreadable("depth", f"nests deeper than {MAX_DEPTH} levels")
    place = f"{error.msg} (line {error.lineno}, column {error.colno})"
    try:
        json.loads(data.decode("utf-8"), parse_int=str, parse_float=str, parse_constant=_refuse_constant)
    except RecursionError:
        return Unreadable("depth", f"nests deeper than {MAX_DEPTH} levels")
    except ValueError:
        return Unreadable("syntax", f"is no JSON: {place}")
    cause: Literal["number", "text"] = "number" if "infinity" in error.msg else "text"
    return Unreadable(cause, f"holds what JSON readers cannot agree on: {place}")


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(text)
