"""A file of one JSON document, or of one per line, to a report of what breaks its schema and its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from labaudit.core.strict_json import parse_json
from labaudit.errors import BadInput
from labaudit.records import document_rules
from labaudit.records.finding import Finding
from labaudit.records.schema_registry import LINE_SCHEMAS, explain, fast_validator

MAX_DOCUMENT = 1 << 28
MAX_LINE = 1 << 24
MAX_REPORTED = 100


@dataclass
class DocumentReport:
    """What was found: `unreadable` are places that are no JSON, `broken` are findings by line (0 for a whole file)."""

    schema: str
    documents: int = 0
    broken_documents: int = 0
    unreadable: list[tuple[int, str]] = field(default_factory=list)
    broken: list[tuple[int, Finding]] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0 when all holds, 1 when a document breaks its contract, 2 when something is no JSON."""
        return 2 if self.unreadable else 1 if self.broken_documents else 0

    def as_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {
            "schema": self.schema,
            "valid": self.exit_code == 0,
            "documents": self.documents,
            "broken_documents": self.broken_documents,
            "unreadable": [{"line": line, "message": message} for line, message in self.unreadable],
            "findings": [{"line": line, **finding.as_json()} for line, finding in self.broken],
        }


def holds_one_per_line(schema: str, file_name: str) -> bool:
    """`.jsonl` always does; a schema for lines does unless the file is called `.json`."""
    name = file_name.lower()
    return name.endswith((".jsonl", ".ndjson")) or (schema in LINE_SCHEMAS and not name.endswith(".json"))


def check_documents(schema: str, stream: BinaryIO, *, per_line: bool, with_rules: bool = False) -> DocumentReport:
    """Reads `stream` to its end; memory grows with the largest document, not with the file."""
    report = DocumentReport(schema)
    check = _checker(schema, with_rules)
    for line, data in _lines(stream) if per_line else _whole(stream):
        try:
            value = parse_json(data, max_bytes=MAX_LINE if per_line else MAX_DOCUMENT)
        except BadInput as error:
            if len(report.unreadable) < MAX_REPORTED:
                report.unreadable.append((line, error.what))
            continue
        report.documents += 1
        found = check(value)
        report.broken_documents += bool(found)
        report.broken.extend((line, finding) for finding in found[: MAX_REPORTED - len(report.broken)])
    return report


def _checker(schema: str, with_rules: bool) -> Callable[[object], list[Finding]]:
    fast = fast_validator(schema)

    def check(value: object) -> list[Finding]:
        found = [] if fast.is_valid(value) else explain(schema, value)
        return [*found, *document_rules.check(schema, value)] if with_rules else found

    return check


def _whole(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    yield 0, stream.read(MAX_DOCUMENT + 1)


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        yield number, line.removesuffix(b"\n")
        while len(line) > MAX_LINE and not line.endswith(b"\n"):
            # The rest of a line that is too long is part of the same bad line.
            line = stream.readline(MAX_LINE + 1)
