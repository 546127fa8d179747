"""Bytes of another tool to a JSON value, as leniently as those tools write and as boundedly as strangers deserve.

Python tools write NaN and Infinity, and integers of any size. Both are read: NaN stays NaN, so that a metric can be
missing for that cause, and infinities stay what they are for the metric's rule to refuse. Everything else that is no
JSON is BadInput.
"""

from __future__ import annotations

import json
import math
from typing import Any

import orjson

from labaudit.core.strict_json import check_depth
from labaudit.errors import BadInput
from labaudit.importers.results import Cause, Value

MAX_DEPTH = 200
_MAX_EXACT = 2**53 - 1


def read_foreign_json(data: bytes, where: str) -> Any:
    """The value in `data`, or BadInput."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        text = data.decode("utf-8-sig")
        check_depth(text, MAX_DEPTH, where)
        return json.loads(text)
    except UnicodeDecodeError as error:
        raise BadInput(f"is not UTF-8 at byte {error.start}", where=where) from error
    except json.JSONDecodeError as error:
        raise BadInput(f"is no JSON: {error.msg} (line {error.lineno}, column {error.colno})", where=where) from error
    except (ValueError, RecursionError) as error:
        raise BadInput("is JSON that cannot be read: a number or its nesting is too large", where=where) from error


def mapping(value: object) -> dict[str, Any]:
    """The object itself, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def rows(value: object) -> list[dict[str, Any]]:
    """The objects of an array; anything else in it is left out."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def not_objects(value: object) -> int:
    """How many entries of an array `rows` leaves out."""
    return sum(not isinstance(item, dict) for item in value) if isinstance(value, list) else 0


def text_of(value: object) -> str | None:
    """Clean text, or None: a lone surrogate becomes a question mark, because records are UTF-8."""
    if isinstance(value, str) and value:
        return value.encode("utf-8", "replace").decode("utf-8")
    return None


def id_text(value: object) -> str | None:
    """An id that is text or a whole number, as text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return text_of(value)


def count_of(value: object) -> int | None:
    """A count, or None: a boolean is none, a negative number is none."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_EXACT:
        return None
    return value


def metric_value(value: object) -> tuple[Value | None, Cause | None]:
    """A metric's value, or the cause of its absence."""
    if value is None:
        return None, "missing"
    if isinstance(value, bool):
        return value, None
    if isinstance(value, int):
        # A count past 2^53 is no double; a rounded one would be another number.
        return (value, None) if abs(value) <= _MAX_EXACT else (None, "invalid")
    if isinstance(value, float):
        if math.isnan(value):
            return None, "nan"
        return (value, None) if math.isfinite(value) else (None, "invalid")
    text = text_of(value)
    return (text, None) if text is not None else (None, "invalid")


def plain(value: Any, *, depth: int = 12, text: int = 20_000) -> Any:
    """The value as canonical JSON can hold it: NaN as text, huge integers as text, long texts cut, deep parts named."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) <= _MAX_EXACT else str(value)[:400]
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        return value if abs(value) <= _MAX_EXACT or not value.is_integer() else repr(value)
    if isinstance(value, str):
        clean = value.encode("utf-8", "replace").decode("utf-8")
        return clean if len(clean) <= text else f"{clean[:text]}… ({len(clean)} characters)"
    if depth == 0:
        return "…"
    if isinstance(value, dict):
        return {plain(str(key)): plain(item, depth=depth - 1, text=text) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, depth=depth - 1, text=text) for item in value]
    return str(value)
