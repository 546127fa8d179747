"""Text of an agent to text that a record can hold: no lone surrogates, no NUL, bounded."""

from __future__ import annotations

import math
import re

MAX_TEXT = 4 << 20
MAX_WIDTH = 10_000
_LARGEST_INTEGER = 2**53 - 1
_UNFIT = re.compile("[\ud800-\udfff\x00]")
ELLIPSIS = "…"


def fit(value: object, limit: int = 2000) -> str:
    """`value` as text when it is text, else empty; what no JSON record can hold becomes U+FFFD."""
    if not isinstance(value, str):
        return ""
    text = _UNFIT.sub("�", value)
    return text if len(text) <= limit else text[: limit - 1] + ELLIPSIS


def object_at(value: object, key: str) -> dict[str, object]:
    """The object under `key`, or an empty one: an agent's wrong type is the same as absence."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def list_at(value: object, key: str) -> list[object]:
    """The list under `key`, or an empty one."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def text_at(value: object, *keys: str, limit: int = 2000) -> str:
    """The first of `keys` that holds text."""
    if isinstance(value, dict):
        for key in keys:
            if isinstance(value.get(key), str):
                return fit(value[key], limit)
    return ""


def fit_value(value: object, depth: int = 12) -> object:
    """Any parsed JSON to a value that a record can hold: texts and numbers within range, depth and width bounded."""
    if isinstance(value, str):
        return fit(value, MAX_TEXT)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return value if math.isfinite(value) and abs(value) <= _LARGEST_INTEGER else str(value)[:40]
    if depth == 0:
        return ELLIPSIS
    if isinstance(value, dict):
        items = list(value.items())[:MAX_WIDTH]
        return {fit(str(key), 500): fit_value(item, depth - 1) for key, item in items}
    if isinstance(value, (list, tuple)):
        return [fit_value(item, depth - 1) for item in value[:MAX_WIDTH]]
    return str(value)[:200]
