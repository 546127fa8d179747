"""Text to the answer whether it is an RFC 3339 date and time with an offset."""

from __future__ import annotations

from rfc3339_validator import validate_rfc3339


def is_rfc3339(value: object) -> bool:
    """True for RFC 3339 times; values that are no string are none of a format's business.

    The validator's pattern ends in `$`, which lets one newline through, so that is refused here; RFC 3339 section 5.6
    allows lower-case `t` and `z`.
    """
    if not isinstance(value, str):
        return True
    return not value.endswith("\n") and bool(validate_rfc3339(value.upper()))
