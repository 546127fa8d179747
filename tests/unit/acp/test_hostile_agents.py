"""Agents that behave as badly as they can: the conversation goes on or ends with a label, and the evidence is whole."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from labaudit.core.canonical import is_canonical
from labaudit.harnesses.acp.client.client import ACPClient
from labaudit.harnesses.acp.client.permissions import Policy, by_policy
from labaudit.harnesses.acp.client.session import ACPSession
from labaudit.harnesses.acp.client.turn import TurnResult
from labaudit.harnesses.acp.wire import framing
from tests.unit.acp.talk import make_client, notes, talking, transcript_entries, wait_until


def turn(client: ACPClient, timeout_s: float = 20.0, text: str = "hello") -> tuple[ACPSession, TurnResult]:
    session = client.session(client.create_session(client.working_directory))
    session.send_message(text)
    result = session.wait_turn(timeout_s)
    assert result is not None, "the turn did not end"
    return session, result


def assert_whole(tmp_path: Path) -> None:
    """Every line of the transcript is canonical and numbered without a gap."""
    lines = (tmp_path / "acp_transcript.jsonl").read_bytes().splitlines()
    assert all(is_canonical(line) for line in lines)
    assert [json.loads(line)["seq"] for line in lines] == list(range(len(lines)))


def test_garbage_is_named_counted_and_survived(tmp_path: Path) -> None:
    with talking("garbage", tmp_path) as client:
        _, result = turn(client)
        assert result.text == "still here"
        assert client.defects == {
            "not_json": 3, "batch": 1, "no_object": 3, "bad_shape": 4, "not_utf8": 1, "duplicate_key": 1, "too_deep": 1,
        }  # fmt: skip
    assert_whole(tmp_path)
    assert any("base64" in entry for entry in transcript_entries(tmp_path))


def test_a_line_of_fifty_megabytes_is_kept_by_its_hash(tmp_path: Path) -> None:
    with talking("long_line", tmp_path) as client:
        _, result = turn(client, 60)
        assert result.text == "after the long line"
        assert client.defects == {"too_long": 1}
    cut = next(entry for entry in transcript_entries(tmp_path) if entry.get("cut"))
    assert cut["size"] > 50 << 20
    assert len(cut["sha256"]) == 64
    assert len(cut["line"]) == framing.KEPT_OF_A_LONG_LINE
    assert_whole(tmp_path)


def test_a_hundred_megabytes_of_stderr_are_counted_and_not_kept(tmp_path: Path) -> None:
    with talking("stderr_flood", tmp_path) as client:
        _, result = turn(client, 60)
        assert result.text == "after the flood"
        wait_until(lambda: client.stderr.total == 1600 * 65536, "all of stderr is counted")
        captured = client.stderr.captured()
    assert len(captured.rendered()) < 1 << 20


def test_a_flood_of_output_ends_with_the_transcript_full(tmp_path: Path) -> None:
    with talking("stdout_flood", tmp_path, max_bytes=4 << 20) as client:
        _, result = turn(client)
        assert result.failure is not None
        assert result.failure.kind == "flood"
    assert (tmp_path / "acp_transcript.jsonl").stat().st_size <= (4 << 20) + 1000
    assert transcript_entries(tmp_path)[-1]["kind"] == "transcript_full"


def test_an_agent_that_asks_and_never_listens_is_deaf(tmp_path: Path) -> None:
    with talking("deaf_asker", tmp_path) as client:
        _, result = turn(client, 60)
        assert result.failure is not None
        assert result.failure.kind in ("deaf", "flood")


def test_an_agent_that_never_reads_its_input_is_left_behind(tmp_path: Path) -> None:
    began = time.monotonic()
    client = make_client("never_reads", tmp_path, request_timeout_s=0.5)
    client.start()
    with pytest.raises(Exception, match="no answer to initialize"):
        client.initialize()
    client.close(0.4)
    assert time.monotonic() - began < 60


def test_an_end_without_a_newline_is_kept_as_such(tmp_path: Path) -> None:
    with talking("exits_unended", tmp_path) as client:
        _, result = turn(client)
        assert result.failure is not None
        assert result.failure.kind == "exited"
        assert client.defects == {"not_json": 1}
    assert any(entry.get("unended") for entry in transcript_entries(tmp_path))


def test_a_child_that_keeps_the_pipes_does_not_hide_the_agents_end(tmp_path: Path) -> None:
    with talking("orphan", tmp_path) as client:
        _, result = turn(client)
        assert result.failure is not None
        assert result.failure.kind == "exited"


def test_meta_that_imitates_our_fields_is_not_looked_at(tmp_path: Path) -> None:
    calls: list[Any] = []
    with talking("meta", tmp_path) as client:
        session = client.session(client.create_session("/"))
        session.on("tool_end", calls.append)
        session.send_message("x")
        result = session.wait_turn(10)
        assert result is not None
        assert result.text == "true"
    assert [(call.call_id, call.kind, call.status) for call in calls] == [("m1", "other", "completed")]


def test_what_comes_after_the_turn_is_noted_and_refused(tmp_path: Path) -> None:
    with talking("late_permission", tmp_path) as client:
        session, result = turn(client)
        assert result.text == "done"
        wait_until(lambda: session.late_updates == 2 and client.stderr.total > 0, "the agent was answered")
        assert session.late_updates == 2
        assert client.inbound.stray_permissions == 1
        assert session.text == "done"
        assert b'"outcome": "cancelled"' in client.stderr.captured().rendered()
    assert notes(tmp_path, "permission_outside_a_turn") == ["t1"]


def test_what_is_not_offered_is_refused_and_on_record(tmp_path: Path) -> None:
    with talking("forbidden", tmp_path) as client:
        _, result = turn(client)
        assert result.text == "-32601 -32601 -32601 {'action': 'decline'} -32601 -32601"
        assert sorted(client.inbound.refused) == [
            "_kiro.dev/mcp/oauth_request", "elicitation/create", "fs/read_text_file", "fs/write_text_file", "made/up",
            "terminal/create",
        ]  # fmt: skip
    assert len(notes(tmp_path, "refused")) == 6


def test_a_standing_grant_is_never_given(tmp_path: Path) -> None:
    everything = by_policy(Policy(frozenset({"edit", "read", "execute"})))
    with talking("only_always", tmp_path, on_permission=everything) as client:
        _, result = turn(client)
    assert result.text == 'permission: {"outcome": "cancelled"}'


def test_a_call_that_changes_its_kind_is_judged_by_all_of_them(tmp_path: Path) -> None:
    with talking("kind_switch", tmp_path, on_permission=by_policy(Policy(frozenset({"read"})))) as client:
        _, result = turn(client)
    assert result.text == "permission: no"


def test_text_that_no_record_can_hold_is_made_fit(tmp_path: Path) -> None:
    with talking("surrogates", tmp_path) as client:
        _, result = turn(client)
    assert result.text == "a�b�c"
    assert_whole(tmp_path)


def test_a_command_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    client = ACPClient(tmp_path, [str(tmp_path / "nothing")])
    with pytest.raises(Exception, match="cannot be started") as caught:
        client.start()
    assert caught.value.exit_code == 4  # type: ignore[attr-defined]


def test_a_defect_in_a_callback_does_not_end_the_conversation(tmp_path: Path) -> None:
    with talking("echo", tmp_path) as client:
        session = client.session(client.create_session("/"))
        session.on_chunk(lambda chunk: 1 / 0)  # type: ignore[arg-type, return-value]
        session.send_message("x")
        result = session.wait_turn(10)
        assert result is not None
        assert result.stop_reason == "end_turn"
    assert "ZeroDivisionError" in notes(tmp_path, "handler_failed")[0]
