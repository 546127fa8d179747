"""Sound records and packets with a wrong value at each path, one at a time: an answer every time, never a crash."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labaudit.contracts.a2a.convert import convert_packet, event_bytes
from labaudit.contracts.a2a.errors import AdapterError
from labaudit.contracts.a2a.packet import Options
from labaudit.contracts.file_check import add_bytes
from labaudit.contracts.record_check import RecordCheck
from labaudit.records.schema_registry import validate

CONFORMANCE = Path(__file__).resolve().parents[2] / "conformance"
WRONG: list[Any] = [
    None, True, False, 0, -1, 0.5, -0.0, 1e308, 2**53 + 1, 2**64, 10**400, float("nan"), float("inf"),
    "", "x", "\ud800", "\u0000", "step:", "step:previous", "__proto__", "dele\u0261ation",
    [], [[]], [None], {}, {"": {}}, ...,
]  # fmt: skip


def sound_records() -> list[Any]:
    values = []
    for case in sorted((CONFORMANCE / "contracts").glob("seed_*")):
        if not case.name.endswith("_fail"):
            value = json.loads(next(case.glob("records.*")).read_text(encoding="utf-8"))
            values.append(value if isinstance(value, list) else [value])
    return values


def paths(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield here
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from paths(part, (*here, key))


def changed(value: Any, path: tuple[Any, ...], wrong: Any) -> Any:
    """A copy with `wrong` at `path`; `...` takes the place away."""
    if not path:
        return None if wrong is ... else wrong
    copy = json.loads(json.dumps(value))
    place = copy
    for key in path[:-1]:
        place = place[key]
    if wrong is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = wrong
    return copy


@pytest.mark.parametrize("records", sound_records(), ids=lambda records: str(records[0].get("id")))
def test_the_checker_answers_whatever_stands_at_any_path_of_a_record(records: list[Any]) -> None:
    tried = 0
    for path in paths(records):
        for wrong in WRONG:
            check = RecordCheck()
            add_bytes(check, json.dumps(changed(records, path, wrong)).encode(), "records")
            report = check.finish()
            assert report.exit_code in (0, 1, 2)
            assert all(finding.path.startswith("$") and finding.message for _, finding in report.findings)
            tried += 1
    assert tried > 100


@pytest.mark.parametrize("case", ["happy_task_requested", "happy_artifact_shared", "happy_agent_capabilities_card"])
@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_the_adapter_answers_whatever_stands_at_any_path_of_a_packet(case: str, mode: Any) -> None:
    packet = json.loads((CONFORMANCE / "a2a" / case / "packet.json").read_text(encoding="utf-8"))
    emitted = refused = 0
    for path in paths(packet):
        for wrong in WRONG:
            try:
                event = convert_packet(json.dumps(changed(packet, path, wrong)).encode(), Options(mode))
            except AdapterError:
                refused += 1
            else:
                assert validate("a2a_event_v1", json.loads(event_bytes(event))) == []
                emitted += 1
    assert emitted > 50
    assert refused > 50
