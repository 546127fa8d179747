"""What a check of many records found: exact counts, and the first findings with their places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from labaudit.contracts.rules.finding import RuleFinding

ENOUGH = 100_000
"""Errors after which nobody learns more from the next one: a checker of foreign files stops there and says so."""


class CheckReport:
    """Counts are exact however many records there are; of the findings themselves `keep` are held.

    With `enough`, a check may end early: `stopped_at` then names the first place that was not looked at.
    """

    def __init__(self, *, keep: int = 1000, enough: int | None = None) -> None:
        self.records: Counter[str] = Counter()
        self.by_rule: Counter[str] = Counter()
        self.errors = 0
        self.warnings = 0
        self.findings: list[tuple[str, RuleFinding]] = []
        self.unreadable: list[tuple[str, str]] = []
        """The first places that hold no JSON; `unreadable_count` has them all."""
        self.unreadable_count = 0
        self.stopped_at: str | None = None
        self._keep = keep
        self._enough = enough

    def count(self, kind: str) -> None:
        """One more record of this kind."""
        self.records[kind] += 1

    def note(self, source: str, finding: RuleFinding) -> None:
        """A finding about the record at `source`."""
        self.by_rule[finding.rule] += 1
        if finding.severity == "error":
            self.errors += 1
        else:
            self.warnings += 1
        if len(self.findings) < self._keep:
            self.findings.append((source, finding))

    def note_all(self, source: str, findings: Iterable[RuleFinding]) -> None:
        """Several findings about one record; one record alone can hold more errors than enough."""
        for finding in findings:
            if self.full:
                self.stopped_at = self.stopped_at or source
                return
            self.note(source, finding)

    def not_json(self, source: str, message: str) -> None:
        """The bytes at `source` are no JSON."""
        self.unreadable_count += 1
        if len(self.unreadable) < max(1, self._keep):
            self.unreadable.append((source, message))

    @property
    def full(self) -> bool:
        """True when enough is known to end here."""
        return self._enough is not None and self.errors + self.unreadable_count >= self._enough

    def merge(self, other: CheckReport) -> None:
        """Adds another report's counts, and as many of its findings as fit."""
        self.records.update(other.records)
        self.by_rule.update(other.by_rule)
        self.errors += other.errors
        self.warnings += other.warnings
        self.findings += other.findings[: self._keep - len(self.findings)]
        self.unreadable += other.unreadable[: max(1, self._keep) - len(self.unreadable)]
        self.unreadable_count += other.unreadable_count
        self.stopped_at = self.stopped_at or other.stopped_at

    @property
    def exit_code(self) -> int:
        """0 without an error, 1 when a record breaks its contract, 2 when something is no JSON."""
        return 2 if self.unreadable_count else 1 if self.errors else 0

    def as_json(self) -> dict[str, object]:
        """The report as a JSON object."""
        return {
            "records": dict(sorted(self.records.items())),
            "errors": self.errors,
            "warnings": self.warnings,
            "by_rule": dict(sorted(self.by_rule.items())),
            "findings": [{"source": source, **finding.as_json()} for source, finding in self.findings],
            "findings_left_out": self.errors + self.warnings - len(self.findings),
            "unreadable": [{"source": source, "message": message} for source, message in self.unreadable],
            "unreadable_left_out": self.unreadable_count - len(self.unreadable),
            "stopped_at": self.stopped_at,
        }
