"""What a check of many records found: exact counts, and the first findings with their places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from labaudit.contracts.rules.finding import RuleFinding


class CheckReport:
    """Counts are exact however many records there are; of the findings themselves `keep` are held."""

    def __init__(self, *, keep: int = 1000) -> None:
        self.records: Counter[str] = Counter()
        self.by_rule: Counter[str] = Counter()
        self.errors = 0
        self.warnings = 0
        self.findings: list[tuple[str, RuleFinding]] = []
        self.unreadable: list[tuple[str, str]] = []
        self._keep = keep

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
        """Several findings about one record."""
        for finding in findings:
            self.note(source, finding)

    def merge(self, other: CheckReport) -> None:
        """Adds another report's counts, and as many of its findings as fit."""
        self.records.update(other.records)
        self.by_rule.update(other.by_rule)
        self.errors += other.errors
        self.warnings += other.warnings
        self.findings += other.findings[: self._keep - len(self.findings)]
        self.unreadable += other.unreadable

    @property
    def exit_code(self) -> int:
        """0 without an error, 1 when a record breaks its contract, 2 when something is no JSON."""
        return 2 if self.unreadable else 1 if self.errors else 0

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
        }
