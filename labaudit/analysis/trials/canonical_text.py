"""Numbers and text to their RFC 8785 form, fast enough for a line per pair of trials.

`canonical_bytes` walks any value; the files here have a million lines of one known shape, whose keys are put in order
once, by hand. A property test keeps both equal.
"""

from __future__ import annotations

from functools import lru_cache

import orjson

from labaudit.core.canonical import canonical_bytes


def number_text(value: float | int) -> str:
    """A finite number as ECMAScript prints it."""
    if isinstance(value, int):
        return str(value)
    if value.is_integer() and -1e15 < value < 1e15:
        return str(int(value))
    size = abs(value)
    # Between these bounds Python's repr and ECMAScript agree digit for digit.
    if 1e-4 <= size < 1e15:
        return repr(value)
    return canonical_bytes(value).decode()


def optional_number(value: float | int | None) -> str:
    """The same, or null."""
    return "null" if value is None else number_text(value)


@lru_cache(maxsize=65536)
def text(value: str | None) -> str:
    """A string literal, or null."""
    return "null" if value is None else orjson.dumps(value).decode()


def scalar_text(value: object) -> str:
    """A metric's value: text, number, boolean or null."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, (int, float)):
        return number_text(value)
    return text(str(value))
