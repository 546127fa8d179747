"""Documents to findings, by schema.

`jsonschema_rs` answers yes or no at tens of thousands of documents per second; only when it says no does `jsonschema`,
a few hundred times slower, work out the sentences. Formats are checked, and by the same function in both.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from labaudit import resources
from labaudit.records.finding import Finding, json_path
from labaudit.records.rfc3339 import is_rfc3339
from labaudit.records.schema_sentences import sentences

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

# Schemas of files that hold one document per line.
LINE_SCHEMAS = frozenset(
    {"event_envelope_v1", "hook_events_v1", "network_event_v1", "score_record_v1", "a2a_event_v1", "paired_diff_v1"}
)
_MAX_FINDINGS = 50


def schema_names() -> list[str]:
    """All schemas there are, sorted."""
    return resources.schema_names()


@cache
def load_schema(name: str) -> dict[str, Any]:
    """One schema as a JSON object; an unknown name is BadInput with the names there are."""
    schema: dict[str, Any] = json.loads(resources.read_schema(name))
    return schema


@cache
def fast_validator(name: str) -> jsonschema_rs.Draft202012Validator:
    """The compiled yes-or-no validator; `fast_validator(name).is_valid(document)` is what a hot loop calls."""
    return jsonschema_rs.Draft202012Validator(
        load_schema(name), formats={"date-time": is_rfc3339}, validate_formats=True
    )


@cache
def slow_validator(name: str) -> Draft202012Validator:
    """The validator that explains; loaded only when there is something to explain."""
    from jsonschema import Draft202012Validator, FormatChecker

    formats = FormatChecker(formats=())
    formats.checks("date-time")(is_rfc3339)
    return Draft202012Validator(load_schema(name), format_checker=formats)


def is_valid(name: str, value: object) -> bool:
    """Whether a document keeps to a schema."""
    return fast_validator(name).is_valid(value)


def validate(name: str, value: object) -> list[Finding]:
    """What a document breaks of a schema; empty when nothing."""
    if fast_validator(name).is_valid(value):
        return []
    return explain(name, value)


def explain(name: str, value: object) -> list[Finding]:
    """The findings of the explaining validator, or of the fast one should only that one object."""
    found: list[Finding] = []
    for error in slow_validator(name).iter_errors(value):
        found.extend(sentences(error, load_schema(name)))
        if len(found) >= _MAX_FINDINGS:
            break
    if not found:
        found = [
            Finding(json_path(error.instance_path), error.message, "schema")
            for error in fast_validator(name).iter_errors(value)
        ]
    return sorted(set(found))[:_MAX_FINDINGS]
