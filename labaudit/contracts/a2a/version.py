"""A version text to the answer whether this adapter reads that version of A2A: major 0, minor 2 or more."""

from __future__ import annotations

import re

from labaudit.contracts.a2a.errors import AdapterError

_UNSIGNED = re.compile(r"\+?[0-9]+")
_MAX_64_BIT = 2**64 - 1


def check_version(sent: object, hint: str | None) -> str:
    """The packet's own version when it is text, else the hint; AdapterError when there is none or it is unsupported."""
    version = sent if isinstance(sent, str) else hint
    if version is None:
        raise AdapterError("measurement", "missing required field: version", hint="give a version hint, such as 0.2")
    if not is_supported(version):
        raise AdapterError(
            "unsupported_protocol_version",
            f"unsupported A2A version: {version[:60]}",
            hint="supported is 0.2 and later, below 1.0",
        )
    return version


def is_supported(version: str) -> bool:
    """True when the first two dot parts are unsigned 64-bit integers, 0 and at least 2; what follows is not read."""
    parts = version.split(".", 2)
    if len(parts) < 2:
        return False
    major, minor = _unsigned(parts[0]), _unsigned(parts[1])
    return major == 0 and minor is not None and minor >= 2


def _unsigned(text: str) -> int | None:
    # Leading zeros may be many; without them 21 characters are past 64 bits, and int() need not see them.
    digits = text.removeprefix("+").lstrip("0") or "0"
    if not _UNSIGNED.fullmatch(text) or len(digits) > 20:
        return None
    value = int(digits)
    return value if value <= _MAX_64_BIT else None
