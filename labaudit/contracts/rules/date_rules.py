"""Dates in records: rule D1."""

from __future__ import annotations

from labaudit.contracts.dates import Moment, parse_moment
from labaudit.contracts.rules.finding import Findings, Json, at, error, kind_of


def moment_at(record: Json, key: str) -> Moment | None:
    """The moment that a field names, or None when it names none."""
    return parse_moment(record.get(key))


def date_has_an_offset(record: Json, key: str, path: str = "$") -> Findings:
    """D1: a date is RFC 3339 with an offset. A field that is not there is another rule's business."""
    if key in record and parse_moment(record[key]) is None:
        value = record[key]
        found = repr(value[:40]) if isinstance(value, str) else kind_of(value)
        yield error(
            "D1",
            at(path, key),
            f"{key} must be an RFC 3339 time with an offset, there is {found}",
            "for example 2026-11-18T07:00:00Z",
        )
