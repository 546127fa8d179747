"""Time as a value for the executor: a wall clock for stamps, a monotonic one for durations."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class StepClock(Protocol):
    """What the executor asks for."""

    def now(self) -> datetime:
        """An aware datetime."""
        ...

    def monotonic(self) -> float:
        """Seconds that only ever grow."""
        ...


class MachineClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        """The current time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """The machine's monotonic clock."""
        return time.monotonic()


class WoundClock:
    """A clock that advances by `step` at each reading of the time: two runs give the same bytes."""

    def __init__(self, start: datetime, step: timedelta = timedelta(milliseconds=1)) -> None:
        self._start = start
        self._now = start
        self._step = step

    def now(self) -> datetime:
        """The next reading."""
        self._now += self._step
        return self._now

    def monotonic(self) -> float:
        """Seconds since the start."""
        return (self._now - self._start).total_seconds()


def stamp(moment: datetime) -> str:
    """`2026-11-18T07:00:00.000000Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def elapsed_ms(clock: StepClock, since: float) -> float:
    """Milliseconds since a monotonic reading, never negative, to the microsecond."""
    return max(0.0, round((clock.monotonic() - since) * 1000, 3))
