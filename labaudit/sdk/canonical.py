"""A JSON value to the bytes that are hashed: RFC 8785, with nothing but the standard library.

The lab recomputes digests from stored values, so both sides must write the same bytes for the same value.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

_LARGEST_INTEGER = 2**53 - 1


def canonical_json(value: Any) -> bytes:
    """The canonical bytes; ValueError or TypeError for what JSON cannot say (NaN, huge integers, objects)."""
    parts: list[str] = []
    _write_value(value, parts)
    return "".join(parts).encode("utf-8")


def digest_of(value: Any) -> str:
    """`sha256:<hex>` of the canonical bytes."""
    return "sha256:" + hashlib.sha256(canonical_json(value)).hexdigest()


def _write_value(value: Any, parts: Any) -> None:
    if value is None or value is True or value is False:
        parts.append({None: "null", True: "true", False: "false"}[value])
    elif isinstance(value, str):
        parts.append(json.dumps(value, ensure_ascii=False))
    elif isinstance(value, int):
        if abs(value) > _LARGEST_INTEGER:
            raise ValueError("an integer beyond 2^53-1 has no place in JSON; write it as text")
        parts.append(str(int(value)))
    elif isinstance(value, float):
        parts.append(_float_text(value))
    elif isinstance(value, (list, tuple)):
        _write_items(value, parts)
    elif isinstance(value, dict):
        _write_members(value, parts)
    else:
        raise TypeError(f"{type(value).__name__} is no JSON value")


def _write_items(items: Any, parts: Any) -> None:
    parts.append("[")
    for position, item in enumerate(items):
        if position:
            parts.append(",")
        _write_value(item, parts)
    parts.append("]")


def _write_members(members: Any, parts: Any) -> None:
    if not all(isinstance(key, str) for key in members):
        raise TypeError("keys of a JSON object are text")
    parts.append("{")
    # RFC 8785 3.2.3: keys sort by UTF-16 units.
    for position, key in enumerate(sorted(members, key=lambda text: text.encode("utf-16-be", "surrogatepass"))):
        if position:
            parts.append(",")
        parts.append(json.dumps(key, ensure_ascii=False) + ":")
        _write_value(members[key], parts)
    parts.append("}")


def _float_text(value: float) -> str:
    """The shortest text of a double in the form that ECMAScript gives it."""
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("NaN and infinity are no JSON numbers")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = whole + ("" if fraction == "0" else fraction)
    point -= len(digits) - len(digits.lstrip("0"))
    digits = digits.strip("0")
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    power = point - 1
    tail = "." + digits[1:] if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if power > 0 else '-'}{abs(power)}"
