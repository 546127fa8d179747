"""Times as other tools write them to RFC 3339 in UTC, or to None where the text does not say which moment it is."""

from __future__ import annotations

from datetime import UTC, datetime

from labaudit.core.clock import rfc3339


def moment_text(text: str | None) -> str | None:
    """The moment in our own form; a time without an offset names no moment."""
    parsed = _parse(text)
    if parsed is None or parsed.tzinfo is None:
        return None
    try:
        return rfc3339(parsed.astimezone(UTC))
    except OverflowError:
        return None


def seconds_between(start: str | None, end: str | None) -> float | None:
    """Seconds from one to the other; two times without offset are taken as of one clock, and none is negative."""
    first, last = _parse(start), _parse(end)
    if first is None or last is None or (first.tzinfo is None) != (last.tzinfo is None):
        return None
    try:
        seconds = (last - first).total_seconds()
    except OverflowError:
        return None
    return seconds if seconds >= 0 else None


def _parse(text: str | None) -> datetime | None:
    if not text or len(text) > 64:
        return None
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return parsed if parsed.year >= 1970 else None
