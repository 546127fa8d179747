"""Time as a value: the clock is handed in, and every stamp is RFC 3339 in UTC with microseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol

from rfc3339_validator import validate_rfc3339

from labaudit.errors import BadInput


class Clock(Protocol):
    """Anything that can tell the time."""

    def now(self) -> datetime:
        """An aware datetime."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """The current time in UTC."""
        return datetime.now(UTC)


class FixedClock:
    """A clock that tests wind: each reading advances by `step`."""

    def __init__(self, start: datetime, step: timedelta = timedelta(0)) -> None:
        self._next = start
        self._step = step

    def now(self) -> datetime:
        """The next reading."""
        reading = self._next
        self._next = reading + self._step
        return reading


def rfc3339(moment: datetime) -> str:
    """`2026-11-18T07:00:00.000000Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_rfc3339(text: str, *, where: str = "") -> datetime:
    """The moment in `text`, or BadInput."""
    if not validate_rfc3339(text):
        raise BadInput(f"{text[:60]!r} is no RFC 3339 time", where=where, hint="for example 2026-11-18T07:00:00Z")
    try:
        return datetime.fromisoformat(text.upper().replace("Z", "+00:00"))
    except ValueError as error:
        raise BadInput(f"{text[:60]!r} is no RFC 3339 time", where=where) from error
