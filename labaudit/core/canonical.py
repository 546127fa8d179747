"""A JSON value to its one canonical byte string (RFC 8785).

orjson writes the same bytes as RFC 8785 for plain values (no floats, ASCII only, integers within 2^53) and is an order
of magnitude faster; everything else goes to the `rfc8785` package. A property test keeps the two equal.
"""

from __future__ import annotations

import json

import orjson
import rfc8785

from labaudit.errors import BadInput

MAX_SAFE_INTEGER = 2**53 - 1
_FAST = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER


def canonical_bytes(value: object) -> bytes:
    """The RFC 8785 form of `value`; NaN, larger integers, lone surrogates and foreign types are BadInput."""
    try:
        if _is_plain(value):
            fast = orjson.dumps(value, option=_FAST)
            # Keys sort by UTF-16 units in RFC 8785 and by code point in orjson; for ASCII these agree.
            if fast.isascii():
                return fast
        return rfc8785.dumps(value)  # type: ignore[arg-type]
    except RecursionError as error:
        raise BadInput("the value nests too deeply for canonical JSON") from error
    except (rfc8785.CanonicalizationError, orjson.JSONEncodeError, UnicodeEncodeError, TypeError) as error:
        raise BadInput(
            f"no canonical JSON exists for this value: {error}",
            hint="JSON here has finite numbers, integers up to 2^53-1 and text without lone surrogates",
        ) from error


def is_canonical(data: bytes) -> bool:
    """True when `data` is exactly the canonical form of the value it encodes (so it has no duplicate keys either)."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    try:
        return canonical_bytes(value) == data
    except BadInput:
        pass
    try:
        # A large double is written without a point; orjson reads it back as an integer that has no canonical form.
        return canonical_bytes(json.loads(data, parse_int=read_integer)) == data
    except (BadInput, ValueError, RecursionError):
        return False


def read_integer(text: str) -> int | float:
    """The number an integer literal stands for: an integer up to 2^53-1, or the double that is written just so."""
    if len(text) <= 17 and abs(value := int(text)) <= MAX_SAFE_INTEGER:
        return value
    if len(text) <= 22 and rfc8785.dumps(number := float(text)) == text.encode():
        return number
    raise ValueError(f"has the integer {text[:24]}, beyond 2^53-1")


def _is_plain(value: object) -> bool:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return True
    if kind is dict:
        return all(type(key) is str and _is_plain(item) for key, item in value.items())  # type: ignore[attr-defined]
    if kind is list or kind is tuple:
        return all(_is_plain(item) for item in value)  # type: ignore[attr-defined]
    return False
