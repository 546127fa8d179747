"""The decision log: canonical lines, numbered per trial, bounded under a flood."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from labaudit.core.canonical import is_canonical
from labaudit.network.proxy.decisions import MAX_KEYS, REPEATS, Decision, DecisionLog
from labaudit.records.schema_registry import validate


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "network_events.jsonl"


@pytest.fixture
def log(path: Path) -> Iterator[DecisionLog]:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    yield DecisionLog(descriptor)
    os.close(descriptor)


HOSTILE = ['"', "\n\r\t\b\f", "\x00\x1f\x7f", "\u2028\u2029", "\ud800", "é漢🙂", "\\", "x" * 9999, "</script>"]


@pytest.mark.parametrize("text", HOSTILE)
def test_every_line_is_canonical_and_valid_whatever_was_asked_for(log: DecisionLog, path: Path, text: str) -> None:
    log.write(Decision("block", "bad_host", text, 443, "connect", "CONNECT", text, reason=text))
    [line] = path.read_bytes().splitlines()
    assert is_canonical(line)
    assert validate("network_event_v1", json.loads(line)) == []
    assert len(line) < 6000


def test_an_allowed_line_is_valid_too(log: DecisionLog, path: Path) -> None:
    said = Decision("allow", "allow:a.test:443", "a.test", 443, "connect", "CONNECT", "a.test", "192.0.2.1", "", 1, 2)
    log.write(said)
    assert validate("network_event_v1", json.loads(path.read_bytes())) == []


def test_a_flood_of_equal_decisions_becomes_a_count(log: DecisionLog, path: Path) -> None:
    for _ in range(1000):
        log.write(Decision("block", "host_not_allowed", "evil.test", 443, bytes_up=1))
    log.end_of_trial()
    events = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert len(events) == REPEATS + 1
    assert events[-1]["count"] == 1000 - REPEATS
    assert events[-1]["bytes_up"] == 1000 - REPEATS
    assert events[-1]["ts"] <= events[-1]["last_ts"]
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert all(validate("network_event_v1", event) == [] for event in events)


def test_a_flood_of_different_hosts_is_counted_by_its_rule(log: DecisionLog, path: Path) -> None:
    for number in range(5000):
        log.write(Decision("block", "host_not_allowed", f"h{number}.evil.test", 443))
    log.end_of_trial()
    events = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert len(events) == MAX_KEYS + REPEATS + 1
    assert sum(event.get("count", 1) for event in events) == 5000
    assert events[-1]["host"] is None


def test_the_next_trial_starts_at_zero_and_with_lines_of_its_own(log: DecisionLog, path: Path) -> None:
    for _ in range(REPEATS + 10):
        log.write(Decision("block", "host_not_allowed", "evil.test", 443))
    size = log.end_of_trial()
    assert size == path.stat().st_size
    log.write(Decision("block", "host_not_allowed", "evil.test", 443))
    [event] = [json.loads(line) for line in path.read_bytes()[size:].splitlines()]
    assert event["seq"] == 0
    assert "count" not in event


def test_a_log_that_cannot_be_written_is_an_error() -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    try:
        with pytest.raises(OSError):
            DecisionLog(descriptor).write(Decision("allow", "x"))
    finally:
        os.close(descriptor)
