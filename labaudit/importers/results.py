"""What a reader gives: rows of trials, the figures that were published about them, and what was odd on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from labaudit.errors import BadInput

Outcome = Literal["success", "failure", "missing", "error"]
Cause = Literal["missing", "error", "absent", "invalid", "nan"]
Value = bool | int | float | str
Severity = Literal["mismatch", "caution", "note"]
Status = Literal["agrees", "agrees_counting_missing_as_failure", "disagrees", "not_recomputed"]


@dataclass(frozen=True)
class ForeignTrial:
    """One trial as another tool's files tell it. Times are as written; `None` is not told."""

    variant: str
    task_id: str
    original_id: str
    """How the tool names the trial; two rows of one variant and task with the same one are duplicates."""
    order: tuple[str | int, ...]
    """Rows of one variant and task are numbered as replicates in this order."""
    outcome: Outcome
    metrics: Mapping[str, Value] = field(default_factory=dict)
    missing: Mapping[str, Cause] = field(default_factory=dict)
    started_at: str | None = None
    ended_at: str | None = None
    seconds: float | None = None
    error: str | None = None
    tokens: int | None = None
    sources: tuple[str, ...] = ()
    """Names of the files that tell of this trial."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else the files say, kept as it is."""


@dataclass(frozen=True)
class MetricDeclaration:
    """A metric of the imported rows; the first one declared is the primary one."""

    name: str
    type: Literal["binary", "continuous"]
    direction: Literal["higher", "lower"] = "higher"


@dataclass(frozen=True)
class PublishedTotal:
    """A figure that was published about rows, and the same figure counted again from them."""

    name: str
    where: str
    published: float
    recomputed: float | None
    status: Status
    sentence: str
    counting_missing_as_failure: float | None = None

    def as_json(self) -> dict[str, object]:
        """The row of the import report."""
        return {
            "name": self.name,
            "where": self.where,
            "published": self.published,
            "recomputed": self.recomputed,
            "counting_missing_as_failure": self.counting_missing_as_failure,
            "status": self.status,
            "sentence": self.sentence,
        }


@dataclass(frozen=True)
class ImportFinding:
    """Something a reader of the results should know; `mismatch` belongs on the first page."""

    code: str
    severity: Severity
    sentence: str
    where: str = ""
    count: int = 1
    examples: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The finding as a JSON object."""
        return {
            "code": self.code,
            "severity": self.severity,
            "sentence": self.sentence,
            "where": self.where,
            "count": self.count,
            "examples": list(self.examples),
        }


@dataclass(frozen=True)
class Tool:
    """Who made the results."""

    name: str
    version: str | None = None


@dataclass(frozen=True)
class VariantInfo:
    """What is known of one arm: agent, model, settings."""

    label: str
    bindings: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class ForeignResults:
    """Everything one import read."""

    format: str
    format_version: str | None
    tool: Tool
    metrics: list[MetricDeclaration]
    title: str = ""
    variants: dict[str, VariantInfo] = field(default_factory=dict)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    trials: list[ForeignTrial] = field(default_factory=list)
    totals: list[PublishedTotal] = field(default_factory=list)
    findings: list[ImportFinding] = field(default_factory=list)

    def nothing(self, what: str, paths: Sequence[Path], hint: str) -> BadInput:
        """The error for paths that gave no row; where files could not be read, that is the reason."""
        damaged = [finding for finding in self.findings if finding.code.startswith("unreadable_")]
        more = f" (and {len(damaged) - 1} more)" if len(damaged) > 1 else ""
        said = f"{what}: {damaged[0].sentence.rstrip('.')}{more}" if damaged else what
        return BadInput(said, where=", ".join(str(path) for path in paths), hint=hint)

    def note(
        self,
        code: str,
        severity: Severity,
        sentence: str,
        *,
        where: str = "",
        count: int = 1,
        examples: tuple[str, ...] = (),
    ) -> None:
        """Adds a finding; only the first few examples are kept."""
        self.findings.append(ImportFinding(code, severity, sentence, where, count, examples[:5]))
