"""Pipeline events to what a user sees: a live line on a terminal, plain lines elsewhere, nothing with --quiet."""

from __future__ import annotations

import sys
import time
from collections import Counter

import click

from labaudit.runner.executor import Measured, TrialDone

PLAIN_EVERY_SECONDS = 5.0


class _Tally:
    """The plan's first primary metric so far; the analysis, not this, says what it means."""

    def __init__(self, first: Measured) -> None:
        by = "its own word too" if first.source == "harness" else first.source
        self._name = f"primary metric {first.metric} ({by})"
        self._total, self._numbers, self._missing, self._binary = 0.0, 0, 0, True

    def add(self, value: object) -> None:
        if isinstance(value, bool | int | float):
            self._total += value
            self._numbers += 1
            self._binary = self._binary and value in (0, 1)
        else:
            self._missing += 1

    def sentence(self) -> str:
        if not self._numbers:
            shown = "no value yet"
        elif self._binary:
            shown = f"{self._total:.0f} of {self._numbers}"
        else:
            shown = f"mean {self._total / self._numbers:.4g} of {self._numbers}"
        return f"{self._name}: {shown}" + (f", {self._missing} missing" if self._missing else "")


class ConsoleProgress:
    """Writes to stderr, so that stdout stays data."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._live = sys.stderr.isatty() and not quiet
        self._total = self._done = self._before = 0
        self._began = self._last = time.monotonic()
        self._outcomes: Counter[str] = Counter()
        self._primary: _Tally | None = None
        self._drawn = False

    def stage(self, text: str) -> None:
        """A step of the pipeline begins."""
        if not self._quiet:
            self._clear()
            click.echo(text, err=True)

    def trials(self, total: int, done: int) -> None:
        """Trials begin; `done` are there already."""
        self._total, self._done, self._before = total, done, done
        self._outcomes.clear()
        self._primary = None
        self._began = time.monotonic()
        if done and not self._quiet:
            click.echo(f"{done} of {total} trials are there already", err=True)

    def trial(self, done: TrialDone) -> None:
        """A trial has ended."""
        self._done += 1
        self._outcomes[done.record.outcome or "lost"] += 1
        if done.primary is not None:
            self._primary = self._primary or _Tally(done.primary)
            self._primary.add(done.primary.value)
        if self._quiet:
            return
        if self._live:
            click.echo("\r\x1b[2K" + self._line(), err=True, nl=False)
            self._drawn = True
        elif self._done == self._total or time.monotonic() - self._last >= PLAIN_EVERY_SECONDS:
            click.echo(self._line(), err=True)
            self._last = time.monotonic()
        if self._live and self._done == self._total:
            click.echo("", err=True)
            self._drawn = False

    def _line(self) -> str:
        """How many trials have ended, how the harness says they did, and what the plan's own metric says of them."""
        counts = ", ".join(f"{count} {name}" for name, count in sorted(self._outcomes.items()))
        now = f" for the {self._done - self._before} run now" if self._before else ""
        spent = time.monotonic() - self._began
        said = f"trials {self._done}/{self._total} in {spent:.0f} s; outcomes by the harness's own word{now}: {counts}"
        return said if self._primary is None else f"{said}; {self._primary.sentence()}"

    def _clear(self) -> None:
        if self._drawn:
            click.echo("", err=True)
            self._drawn = False
