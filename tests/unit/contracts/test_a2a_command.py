"""`labaudit a2a`: what is printed, what is refused, and with which exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from labaudit.cli import labaudit
from labaudit.errors import BadInput

PACKET = {
    "protocol": "a2a",
    "version": "0.2",
    "event_type": "task.requested",
    "timestamp": "2026-02-27T12:00:00+02:00",
    "agent": {"id": "agent://c"},
    "task": {"id": "task-1", "kind": "delegation"},
}


def convert(data: bytes | str, *options: str) -> Result:
    return CliRunner().invoke(labaudit, ["a2a", "convert", "-", *options], input=data)


def changed(**fields: Any) -> str:
    return json.dumps({key: value for key, value in {**PACKET, **fields}.items() if value is not ...})


def refusal(result: Result) -> dict[str, str]:
    assert result.stdout == "", "nothing is emitted when a packet is refused"
    return json.loads(result.stderr)  # type: ignore[no-any-return]


def test_one_packet_gives_one_event_on_one_line() -> None:
    result = convert(changed())
    assert result.exit_code == 0
    assert result.stdout.count("\n") == 1
    event = json.loads(result.stdout)
    assert (event["subject"], event["run_id"], event["seq"]) == ("task-1", "a2a:task-1", 0)
    assert event["time"] == "2026-02-27T10:00:00Z"
    assert event["raw"]["size"] == len(changed())
    assert event["notes"] == []


@pytest.mark.parametrize(
    ("data", "kind", "code"),
    [
        (changed(agent=...), "measurement", 1),
        (changed(agent={"id": 7}), "measurement", 1),
        (changed(event_type="x"), "strict_lossiness_violation", 1),
        (changed(event_type=...), "strict_lossiness_violation", 1),
        (changed(event_type="x", agent=...), "measurement", 1),
        (changed(task=...), "measurement", 1),
        (changed(event_type="artifact.shared"), "measurement", 1),
        (changed(version=...), "measurement", 1),
        (changed(version=" 0.2"), "unsupported_protocol_version", 1),
        (changed(protocol="A2A"), "measurement", 1),
        ("[]", "measurement", 1),
        ('{"a": 1e999}', "measurement", 1),
        ('{"a": "\\ud800"}', "measurement", 1),
        ("[" * 100_000, "measurement", 1),
        ('{"a": NaN}', "measurement", 2),
        ("{", "measurement", 2),
        (b"\xff{}", "measurement", 2),
        ("", "measurement", 2),
    ],
)
def test_a_refused_packet_names_its_kind_and_emits_nothing(data: str | bytes, kind: str, code: int) -> None:
    result = convert(data, "--json")
    assert refusal(result)["error_kind"] == kind
    assert result.exit_code == code


@pytest.mark.parametrize(("version", "code"), [("0.10", 0), ("0.2.x.y", 0), ("+0.2", 0), ("0.1", 1), ("0", 1)])
def test_versions_are_read_by_their_first_two_parts(version: str, code: int) -> None:
    assert convert(changed(version=version)).exit_code == code


def test_the_packet_s_version_wins_over_the_hint() -> None:
    hinted, own = convert(changed(version=...), "--version-hint", "0.3"), convert(changed(), "--version-hint", "1.0")
    assert json.loads(hinted.stdout)["payload"]["protocol_version"] == "0.3"
    assert json.loads(own.stdout)["payload"]["protocol_version"] == "0.2"


def test_the_caps_stop_a_packet_before_it_is_understood() -> None:
    deep = changed(attributes={"a": {"b": {}}})
    assert convert(changed(), "--max-payload-bytes", "10").exit_code == 1
    assert convert(changed(), "--max-payload-bytes", str(len(changed()))).exit_code == 0
    assert convert(deep, "--max-json-depth", "2").exit_code == 1
    assert convert(deep, "--max-json-depth", "4").exit_code == 0
    assert convert(changed(attributes=[1, 2, 3]), "--max-array-length", "2").exit_code == 1
    assert convert(changed(attributes=[1, 2, 3]), "--max-array-length", "3").exit_code == 0


def test_a_stream_goes_on_after_a_bad_line_and_says_which_it_was() -> None:
    lines = "\n".join([changed(), "{", changed(task=...), changed()]) + "\n"
    result = convert(lines, "--jsonl", "--json")
    assert result.stdout.count("\n") == 2
    assert [json.loads(line)["line"] for line in result.stderr.splitlines()] == [2, 3]
    assert result.exit_code == 2


def test_lenient_mode_substitutes_and_notes() -> None:
    event = json.loads(convert(changed(agent=..., task=..., timestamp="soon"), "--mode", "lenient").stdout)
    assert event["payload"]["unmapped_fields_count"] == 2
    assert event["lossiness"] == "low"
    assert len(event["notes"]) == 3, "two substitutions and the time"
    assert event["time"] == "2023-11-16T02:00:00Z"


def test_a_key_that_stands_twice_is_noted() -> None:
    twice = changed()[:-1] + ', "task": {"id": "task-2"}}'
    event = json.loads(convert(twice).stdout)
    assert event["payload"]["handoff"]["visible"] is False, "the last value wins"
    assert "duplicate" in event["notes"][0]


def test_the_raw_bytes_are_kept_even_when_they_cannot_be_parsed(tmp_path: Path) -> None:
    result = convert("{ broken", "--store", str(tmp_path))
    assert result.exit_code == 2
    assert [path.read_bytes() for path in (tmp_path / "sha256").iterdir()] == [b"{ broken"]


@pytest.mark.parametrize("name", ["nowhere.json", "."])
def test_an_unreadable_file_is_a_sentence(tmp_path: Path, name: str) -> None:
    result = CliRunner().invoke(labaudit, ["a2a", "convert", str(tmp_path / name), "--json"])
    assert result.exit_code == 2
    assert "Traceback" not in result.output


@pytest.mark.acceptance
def test_a_reader_that_leaves_early_is_no_fault_of_the_packets(tmp_path: Path) -> None:
    packets = tmp_path / "packets.jsonl"
    packets.write_text(f"{changed()}\n" * 5000, encoding="utf-8")
    command = [sys.executable, "-m", "labaudit", "a2a", "convert", str(packets), "--jsonl"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b'{"schema_version"')
        process.stdout.close()
        assert process.stderr.read() == b"", "no error kind is named, least of all for the input"


@pytest.mark.parametrize("options", [[], ["--jsonl"]])
def test_events_that_cannot_be_written_are_no_fault_of_the_input(options: list[str]) -> None:
    command = [sys.executable, "-m", "labaudit", "a2a", "convert", "-", "--json", *options]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command, input=changed().encode(), stdout=full, stderr=subprocess.PIPE, check=False, timeout=60
        )
    assert done.returncode == 4
    assert json.loads(done.stderr)["error_kind"] == "infrastructure"


def test_a_packet_of_64_megabytes_is_converted() -> None:
    large = changed(attributes=["x" * 1024] * (64 * 1024))
    event = json.loads(convert(large).stdout)
    assert event["raw"]["size"] == len(large) > 64_000_000
    assert convert(large, "--max-payload-bytes", "1000000", "--json").exit_code == 1


def test_the_folder_check_says_what_no_packet_exercised(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(changed())
    result = CliRunner().invoke(labaudit, ["a2a", "check", str(tmp_path), "--json"])
    rows = {row["id"]: row["status"] for row in json.loads(result.stdout)["matrix"]}
    assert rows["P1"] == "held"
    assert {rows[name] for name in ("N1", "N2", "N3", "N4", "N7")} == {"not exercised"}
    assert result.exit_code == 0


def test_stored_events_that_their_packets_do_not_give_are_found(tmp_path: Path) -> None:
    (tmp_path / "a2a_packets.jsonl").write_text(changed() + "\n")
    event = json.loads(convert(changed(), "--mode", "lenient").stdout)
    stored = tmp_path / "a2a_events.jsonl"
    stored.write_text(json.dumps(event) + "\n")
    assert CliRunner().invoke(labaudit, ["a2a", "check", str(tmp_path)]).exit_code == 0
    event["payload"]["handoff"]["message_ref_visible"] = True
    stored.write_text(json.dumps(event) + "\n")
    result = CliRunner().invoke(labaudit, ["a2a", "check", str(tmp_path)])
    assert result.exit_code == 1
    assert "a2a_events.jsonl" in result.stdout


def test_packets_that_exercise_nothing_are_no_success(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"protocol": "mcp"}')
    (tmp_path / "list.json").write_text("[]")
    result = CliRunner().invoke(labaudit, ["a2a", "check", str(tmp_path)])
    assert "2 packets, 2 gave no event" in result.stdout
    assert "a packet is a JSON object" in result.stdout
    assert isinstance(result.exception, BadInput)
    assert "no packet exercised any case" in str(result.exception)


def test_an_empty_folder_is_no_success(tmp_path: Path) -> None:
    result = CliRunner().invoke(labaudit, ["a2a", "check", str(tmp_path)])
    assert isinstance(result.exception, BadInput)
