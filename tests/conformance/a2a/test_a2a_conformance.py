"""Each folder here is a packet and what K1-A v1 says of it in both modes; `_fail` is refused in strict mode."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from labaudit import __version__
from labaudit.contracts.a2a.convert import convert_packet, event_bytes
from labaudit.contracts.a2a.errors import AdapterError
from labaudit.contracts.a2a.folder_check import check_folder
from labaudit.contracts.a2a.packet import Options
from labaudit.records.schema_registry import validate

HERE = Path(__file__).resolve().parent
CASES = sorted(path.name for path in HERE.iterdir() if (path / "packet.json").is_file())


def packet(case: str) -> bytes:
    return (HERE / case / "packet.json").read_bytes()


def converted(case: str, mode: str) -> dict[str, object]:
    return convert_packet(packet(case), Options(mode=mode))  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["strict", "lenient"])
@pytest.mark.parametrize("case", CASES)
def test_the_packet_gives_what_the_freeze_says(case: str, mode: str) -> None:
    expected = json.loads((HERE / case / "expected.json").read_text(encoding="utf-8"))
    wanted = expected[mode]
    if mode == "strict":
        assert ("error_kind" in wanted) == case.endswith("_fail"), "the folder's name says whether strict mode refuses"
    if "error_kind" in wanted:
        with pytest.raises(AdapterError) as caught:
            converted(case, mode)
        assert caught.value.kind == wanted["error_kind"]
        return
    event = converted(case, mode)
    payload = dict(event["payload"])  # type: ignore[call-overload]
    assert payload.pop("adapter_version") == __version__
    assert payload == wanted["payload"]
    order = [key for key in payload if key in wanted["payload"]]
    assert order == list(wanted["payload"]), "the keys stand in the order of the freeze"
    assert event["lossiness"] == expected["lossiness"]
    assert validate("a2a_event_v1", json.loads(event_bytes(event))) == []


@pytest.mark.parametrize("case", CASES)
def test_a_thousand_conversions_are_byte_identical(case: str) -> None:
    outcomes = set()
    for _ in range(1000):
        try:
            outcomes.add(event_bytes(converted(case, "lenient")))
        except AdapterError as error:
            outcomes.add(f"{error.kind}: {error}".encode())
    assert len(outcomes) == 1


@pytest.mark.parametrize(
    ("case", "mode", "first", "last"),
    [
        ("happy_artifact_shared", "strict", "60e992b4", "294a"),
        ("happy_task_requested", "strict", "e478af73", "d33b"),
        ("missing_task_id_fail", "lenient", "0be26074", "effe"),
    ],
)
def test_the_golden_digests_of_the_handoff_reproduce(case: str, mode: str, first: str, last: str) -> None:
    handoff = converted(case, mode)["payload"]["handoff"]  # type: ignore[index,call-overload]
    digest = hashlib.sha256(json.dumps(handoff, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    assert (digest[:8], digest[-4:]) == (first, last)


def test_the_folder_exercises_and_holds_every_case_of_the_matrix() -> None:
    report = check_folder(HERE)
    rows = {row.case.id: row.status for row in report.matrix}
    assert rows == dict.fromkeys(["N1", "N2", "N3", "N4", "N5", "N6", "N7", "P1"], "held")
    assert {answer.answer for answer in report.answers} == {"yes"}, [answer.as_json() for answer in report.answers]
