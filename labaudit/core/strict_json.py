"""Bytes from outside to a JSON value, refusing all that Python's `json` forgives.

Duplicate keys, NaN, integers past 2^53 that are no double, lone surrogates, a byte order mark and bad UTF-8 are each a
way for two readers to see two documents; each is BadInput with the place it stands at.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

from labaudit.core.canonical import read_integer
from labaudit.errors import BadInput

_SURROGATE = re.compile("[\ud800-\udfff]")


def parse_json(data: bytes, *, where: str = "", max_depth: int = 128, max_bytes: int | None = None) -> object:
    """The one JSON value in `data`, or BadInput naming what is wrong."""
    if max_bytes is not None and len(data) > max_bytes:
        raise BadInput(f"{len(data)} bytes are more than the {max_bytes} allowed", where=where)
    if data.startswith(b"\xef\xbb\xbf"):
        raise BadInput("starts with a byte order mark", where=where, hint="save it as UTF-8 without BOM")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"is not UTF-8 at byte {error.start}", where=where) from error
    check_depth(text, max_depth, where)
    try:
        value: object = json.loads(
            text,
            object_pairs_hook=_unique_object,
            parse_int=_safe_integer,
            parse_float=_finite_float,
            parse_constant=_no_constant,
        )
    except json.JSONDecodeError as error:
        place = f"{where}:{error.lineno}" if where else f"line {error.lineno}"
        raise BadInput(f"is no JSON: {error.msg} (column {error.colno})", where=place) from error
    except _Refused as error:
        raise BadInput(str(error), where=where) from error
    if "\\u" in text and _has_surrogate(value):
        raise BadInput("has a lone surrogate in a string", where=where)
    return value


def parse_object(data: bytes, *, where: str = "", max_bytes: int | None = None) -> dict[str, object]:
    """The JSON object in `data`; any other JSON value is BadInput."""
    value = parse_json(data, where=where, max_bytes=max_bytes)
    if not isinstance(value, dict):
        raise BadInput(f"should hold a JSON object, holds {_kind(value)}", where=where)
    return value


def check_depth(text: str, max_depth: int, where: str = "") -> None:
    """BadInput when brackets nest past `max_depth`; looked at before parsing so that depth cannot exhaust the stack."""
    if text.count("[") + text.count("{") <= max_depth:
        return
    depth = 0
    in_string = escaped = False
    for char in text:
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char in "[{":
            depth += 1
            if depth > max_depth:
                raise BadInput(f"nests deeper than {max_depth} levels", where=where)
        elif char in "]}":
            depth -= 1


class _Refused(ValueError):
    """Carries a refusal out of the json module's callbacks."""


def _unique_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Refused(f"has the key {key!r} twice in one object")
            seen.add(key)
    return result


def _safe_integer(text: str) -> int | float:
    try:
        return read_integer(text)
    except ValueError as error:
        raise _Refused(str(error)) from error


def _finite_float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _Refused(f"has the number {text[:24]}, too large for a double")
    return value


def _no_constant(text: str) -> NoReturn:
    raise _Refused(f"has {text}, which JSON does not know")


def _has_surrogate(value: object) -> bool:
    if isinstance(value, str):
        return _SURROGATE.search(value) is not None
    if isinstance(value, dict):
        return any(_has_surrogate(key) or _has_surrogate(item) for key, item in value.items())
    if isinstance(value, list):
        return any(_has_surrogate(item) for item in value)
    return False


def _kind(value: object) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
