"""`labaudit hooks-validate` in words: what is broken and where, what was not checked, errors without a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).parents[2] / "conformance" / "hooks"


def run(*arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "labaudit", "hooks-validate", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=60)


def test_a_broken_rule_is_named_with_its_line() -> None:
    case = CASES / "H4_step_after_stop_fail"
    done = run(case / "harness_events.jsonl", "--manifest", case / "harness_manifest.json")
    assert done.returncode == 1
    assert b":6: step 1 starts after a stop was acknowledged [H4 no_step_starts_after_stop]" in done.stdout
    assert b"not checked: H8" in done.stderr


def test_a_stream_comes_from_stdin_too() -> None:
    case = CASES / "two_steps"
    data = (case / "harness_events.jsonl").read_bytes()
    done = run("-", "--manifest", case / "harness_manifest.json", stdin=data)
    assert done.returncode == 0
    assert b"2 steps, 2 turns, 2 tool calls, 2 control acks" in done.stdout


def test_events_of_two_trials_in_one_stream_are_seen_without_knowing_the_trial() -> None:
    case = CASES / "H7_one_event_of_another_trial_fail"
    done = run(case / "harness_events.jsonl", "--manifest", case / "harness_manifest.json")
    assert done.returncode == 1
    assert b"the first event's is" in done.stdout


@pytest.mark.parametrize(
    ("content", "code"),
    [(None, 2), (b"{half", 2), (b'{"schema_version":"harness_manifest_v1"}', 1)],
)
def test_a_manifest_that_cannot_be_used_ends_the_command(tmp_path: Path, content: bytes | None, code: int) -> None:
    manifest = tmp_path / "m.json"
    if content is not None:
        manifest.write_bytes(content)
    done = run(CASES / "two_steps" / "harness_events.jsonl", "--manifest", manifest)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    assert b"m.json" in done.stderr


def test_a_stream_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    done = run(tmp_path / "none.jsonl", "--manifest", CASES / "two_steps" / "harness_manifest.json")
    assert done.returncode == 2
    assert b"there is no such file" in done.stderr
