"""Files of documents, line by line or whole, to a report."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from labaudit.records import document_check
from labaudit.records.document_check import check_documents, holds_one_per_line

DOCUMENTS = Path(__file__).parent / "documents"
EVENT = json.loads((DOCUMENTS / "hook_events_v1/control_ack.json").read_text())


def lines(*values: object) -> io.BytesIO:
    return io.BytesIO(b"".join((v if isinstance(v, bytes) else json.dumps(v).encode()) + b"\n" for v in values))


@pytest.mark.parametrize(
    ("schema", "name", "answer"),
    [
        ("hook_events_v1", "harness_events.jsonl", True),
        ("hook_events_v1", "event.json", False),
        ("hook_events_v1", "-", True),
        ("trial_output_v1", "many.JSONL", True),
        ("trial_output_v1", "trial_output.json", False),
        ("manifest_v1", "-", False),
    ],
)
def test_the_name_and_the_schema_say_whether_a_file_is_read_by_line(schema: str, name: str, answer: bool) -> None:
    assert holds_one_per_line(schema, name) is answer


def test_a_good_stream_is_counted_and_ends_with_0() -> None:
    report = check_documents("hook_events_v1", lines(EVENT, EVENT), per_line=True)
    assert (report.documents, report.exit_code, report.broken) == (2, 0, [])


def test_a_broken_line_is_named_by_its_number_and_ends_with_1() -> None:
    report = check_documents("hook_events_v1", lines(EVENT, {**EVENT, "seq": -1}, EVENT), per_line=True)
    assert report.exit_code == 1
    assert [(line, finding.path) for line, finding in report.broken] == [(2, "$.seq")]


@pytest.mark.parametrize("bad", [b"{", b"", b'{"a":1,"a":2}', b'{"a":NaN}', b"\xff", b"9007199254740993"])
def test_a_line_that_is_no_json_ends_with_2_whatever_else_is_there(bad: bytes) -> None:
    report = check_documents("hook_events_v1", lines({**EVENT, "seq": -1}, bad, EVENT), per_line=True)
    assert report.exit_code == 2
    assert [line for line, _ in report.unreadable] == [2]
    assert (report.documents, report.broken_documents) == (2, 1)


def test_a_last_line_without_its_newline_is_read() -> None:
    stream = io.BytesIO(json.dumps(EVENT).encode())
    assert check_documents("hook_events_v1", stream, per_line=True).documents == 1


def test_an_empty_stream_has_no_lines_and_an_empty_document_is_no_json() -> None:
    assert check_documents("network_event_v1", io.BytesIO(), per_line=True).as_json()["documents"] == 0
    assert check_documents("trial_output_v1", io.BytesIO(), per_line=False).exit_code == 2


def test_a_line_past_the_limit_is_one_bad_line_and_the_next_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_check, "MAX_LINE", 2000)
    report = check_documents("hook_events_v1", lines(b'"' + b"x" * 9000 + b'"', EVENT), per_line=True)
    assert [line for line, _ in report.unreadable] == [1]
    assert report.documents == 1


def test_rules_are_asked_only_when_wanted() -> None:
    value = {**json.loads((DOCUMENTS / "trial_output_v1/full.json").read_text())}
    del value["error"]
    data = json.dumps(value).encode()
    assert check_documents("trial_output_v1", io.BytesIO(data), per_line=False).exit_code == 0
    report = check_documents("trial_output_v1", io.BytesIO(data), per_line=False, with_rules=True)
    assert [finding.rule for _, finding in report.broken] == ["O1"]


def test_a_flood_of_findings_is_counted_and_not_kept() -> None:
    report = check_documents("hook_events_v1", lines(*[{**EVENT, "bogus": 1}] * 300), per_line=True)
    assert report.broken_documents == 300
    assert len(report.broken) == document_check.MAX_REPORTED
