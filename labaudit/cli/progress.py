"""Pipeline events to what a user sees: a live line on a terminal, plain lines elsewhere, nothing with --quiet."""

from __future__ import annotations

import sys
import time
from collections import Counter

import click

from labaudit.runner.executor import TrialDone

PLAIN_EVERY_SECONDS = 5.0


class ConsoleProgress:
    """Writes to stderr, so that stdout stays data."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._live = sys.stderr.isatty() and not quiet
        self._total = self._done = 0
        self._began = self._last = time.monotonic()
        self._outcomes: Counter[str] = Counter()
        self._drawn = False

    def stage(self, text: str) -> None:
        """A step of the pipeline begins."""
        if not self._quiet:
            self._clear()
            click.echo(text, err=True)

    def trials(self, total: int, done: int) -> None:
        """Trials begin; `done` are there already."""
        self._total, self._done = total, done
        self._outcomes.clear()
        self._began = time.monotonic()
        if done and not self._quiet:
            click.echo(f"{done} of {total} trials are there already", err=True)

    def trial(self, done: TrialDone) -> None:
        """A trial has ended."""
        self._done += 1
        self._outcomes[done.record.outcome or "lost"] += 1
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
        counts = ", ".join(f"{count} {name}" for name, count in sorted(self._outcomes.items()))
        spent = time.monotonic() - self._began
        return f"trials {self._done}/{self._total} ({counts}) {spent:.0f} s"

    def _clear(self) -> None:
        if self._drawn:
            click.echo("", err=True)
            self._drawn = False
