"""`labaudit schema` and `labaudit schema-validate` as a user calls them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

DOCUMENTS = Path(__file__).parent / "documents"


def labaudit(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "labaudit", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=60)


def test_list_names_every_schema_in_text_and_in_json() -> None:
    names = [row["name"] for row in json.loads(labaudit("schema", "list", "--json").stdout)]
    kept = (Path(__file__).resolve().parents[3] / "schemas").glob("*.jsonschema")
    assert names == sorted(path.stem for path in kept)
    text = labaudit("schema", "list").stdout.decode()
    assert [line.split()[0] for line in text.splitlines()] == names


def test_show_prints_the_schema_byte_for_byte() -> None:
    shown = labaudit("schema", "show", "hook_events_v1")
    assert shown.returncode == 0
    top = Path(__file__).resolve().parents[3]
    assert shown.stdout == (top / "schemas/hook_events_v1.jsonschema").read_bytes()


def test_an_unknown_schema_ends_with_2_and_the_near_name() -> None:
    for arguments in (("schema", "show", "hook_event_v1"), ("schema-validate", "hook_event_v1", "x.json")):
        refused = labaudit(*arguments)
        assert refused.returncode == 2
        assert b"did you mean hook_events_v1?" in refused.stderr
        assert b"Traceback" not in refused.stderr


def test_a_valid_document_ends_with_0() -> None:
    done = labaudit("schema-validate", "trial_output_v1", str(DOCUMENTS / "trial_output_v1/full.json"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"1 document valid against trial_output_v1\n")


def test_a_broken_document_ends_with_1_and_says_where(tmp_path: Path) -> None:
    value = json.loads((DOCUMENTS / "trial_output_v1/full.json").read_text())
    path = tmp_path / "trial_output.json"
    path.write_text(json.dumps({**value, "outcome": "fine"}))
    done = labaudit("schema-validate", "trial_output_v1", str(path))
    assert done.returncode == 1
    assert b"$.outcome: 'fine' is not one of" in done.stdout
    report = json.loads(labaudit("schema-validate", "trial_output_v1", str(path), "--json").stdout)
    assert report["valid"] is False
    assert report["findings"][0]["path"] == "$.outcome"


def test_a_stream_on_stdin_is_checked_line_by_line() -> None:
    good = json.dumps(json.loads((DOCUMENTS / "hook_events_v1/error.json").read_text()))
    done = labaudit("schema-validate", "hook_events_v1", "-", "--json", stdin=f"{good}\n{good[:-1]},\n".encode())
    assert done.returncode == 2
    assert json.loads(done.stdout)["unreadable"][0]["line"] == 2


@pytest.mark.parametrize("kind", ["missing", "directory", "no_json", "duplicate", "nan", "huge_integer", "nul"])
def test_what_cannot_be_read_as_json_ends_with_2_and_no_traceback(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    contents = {"no_json": "{", "duplicate": '{"a":1,"a":2}', "nan": '{"a":NaN}', "huge_integer": "9007199254740993"}
    if kind == "directory":
        path.mkdir()
    elif kind in contents:
        path.write_text(contents[kind])
    argument = "a\\0b" if kind == "nul" else str(path)
    done = labaudit("schema-validate", "trial_output_v1", argument)
    assert done.returncode == 2
    assert done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_may_not_be_read_is_the_environments_fault(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    path.chmod(0)
    assert labaudit("schema-validate", "trial_output_v1", str(path)).returncode == 4


@pytest.mark.parametrize("command", [("schema",), ("schema", "list"), ("schema", "show"), ("schema-validate",)])
def test_help_has_an_example(command: tuple[str, ...]) -> None:
    done = labaudit(*command, "--help")
    assert done.returncode == 0
    assert b"Example: labaudit schema" in done.stdout
