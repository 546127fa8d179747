"""Numbers to text with a fixed number of decimals and a unit, the same on every machine."""

from __future__ import annotations

import math
from datetime import UTC, datetime

MINUS = "\u2212"
NONE = "not available"


def number(value: object, digits: int = 3) -> str:
    """A number with `digits` decimals, a true minus sign; whole numbers without decimals; None says so."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", MINUS).replace(",", "\u202f")
    if isinstance(value, float):
        if not math.isfinite(value):
            return NONE
        return f"{value:.{digits}f}".replace("-", MINUS)
    return str(value)


def decimal(value: object, digits: int = 3) -> str:
    """A measured quantity: decimals even when they are all zero."""
    return number(float(value) if isinstance(value, int) and not isinstance(value, bool) else value, digits)


def signed(value: object, digits: int = 3) -> str:
    """A difference: always with its sign."""
    if value is None:
        return NONE
    if isinstance(value, int | float) and value > 0:
        return "+" + number(float(value), digits)
    return number(float(value) if isinstance(value, int) else value, digits)


def interval(low: object, high: object) -> str:
    """Two ends of a range with their signs; a range without ends is one word, not two."""
    return NONE if low is None and high is None else f"{signed(low)} to {signed(high)}"


def p_value(value: object) -> str:
    """A p-value in the way people read it."""
    if not isinstance(value, int | float):
        return NONE
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def percent(part: int, whole: int) -> str:
    """`3 of 4 (75 %)`; nothing of nothing is no percentage."""
    return f"{number(part)} of {number(whole)}" + (f" ({100 * part / whole:.0f}\u202f%)" if whole else "")


def size(value: object) -> str:
    """Bytes with a unit."""
    if not isinstance(value, int):
        return NONE
    amount = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            return f"{value} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return NONE


def seconds(value: object) -> str:
    """A duration with a unit."""
    if not isinstance(value, int | float):
        return NONE
    if value < 10:
        return f"{value:.3f} s"
    return f"{value:.1f} s" if value < 600 else f"{value / 60:.1f} min"


def moment(text: object) -> datetime | None:
    """The moment in an RFC 3339 text, or None."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return found if found.tzinfo else None


def elapsed(start: object, end: object) -> float | None:
    """Seconds between two RFC 3339 texts, or None when one is unreadable."""
    first, last = moment(start), moment(end)
    return (last - first).total_seconds() if first and last else None


def clock(text: object) -> str:
    """`2026-11-18 09:30:00 UTC` from RFC 3339 text; an unreadable one is shown as it is."""
    found = moment(text)
    if found is None:
        return NONE if text is None else str(text)
    return found.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") + " UTC"


def words(name: object) -> str:
    """A code name as words: `not_observed` reads `not observed`."""
    return str(name).replace("_", " ")
