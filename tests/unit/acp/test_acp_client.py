"""ACPClient and ACPSession with a real agent process at the other end: every part of the protocol, as it should go."""

from __future__ import annotations

import json
import sys
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from labaudit.errors import BadInput
from labaudit.harnesses.acp.client.client import ACPClient, agent_info
from labaudit.harnesses.acp.client.detect import detect, supports_acp
from labaudit.harnesses.acp.client.driving import drive_turn
from labaudit.harnesses.acp.client.failures import AgentFailure
from labaudit.harnesses.acp.client.permissions import Policy, by_policy
from labaudit.harnesses.acp.client.session import ACPSession
from labaudit.harnesses.acp.client.turn import TurnResult
from labaudit.harnesses.acp.wire import dialect, jsonrpc
from tests.unit.acp.official import has_schema, problems
from tests.unit.acp.talk import AGENT, make_client, notes, talking, transcript_entries, wait_until


def turn(session: ACPSession, text: str = "hello", timeout_s: float = 20.0) -> TurnResult:
    session.send_message(text)
    result = session.wait_turn(timeout_s)
    assert result is not None, "the turn did not end"
    return result


def new_session(client: ACPClient) -> ACPSession:
    return client.session(client.create_session(client.working_directory))


# --- unit: serialisation, state, routing, errors, request ids ---


def test_messages_are_serialised_and_read_back() -> None:
    line = jsonrpc.request_line(7, "session/prompt", dialect.prompt("v1", "s", [dialect.text_block("hé\n\"'")]))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    read = jsonrpc.read_message(line[:-1])
    assert read == jsonrpc.Request(7, "session/prompt", {"sessionId": "s", "prompt": [dialect.text_block("hé\n\"'")]})
    assert jsonrpc.read_message(jsonrpc.result_line("a", None)[:-1]) == jsonrpc.Response("a", None)
    assert jsonrpc.read_message(jsonrpc.error_line(1, -32601, "no")[:-1]) == jsonrpc.ErrorResponse(1, -32601, "no")


def test_the_state_of_a_session_follows_its_turn(tmp_path: Path) -> None:
    with talking("wait_for_cancel", tmp_path) as client:
        session = new_session(client)
        assert not session.in_turn
        session.send_message("go")
        assert session.in_turn
        with pytest.raises(BadInput, match="a turn is running"):
            session.send_message("again")
        session.cancel()
        result = session.wait_turn(10)
        assert result is not None
        assert result.stop_reason == "cancelled"
        assert not session.in_turn


def test_notifications_go_to_their_session_and_to_listeners(tmp_path: Path) -> None:
    heard: list[str] = []
    with talking("strangers", tmp_path) as client:
        client.on_notification(lambda method, params: heard.append(method))
        session = new_session(client)
        assert turn(session).text == "for you"
        assert client.inbound.unknown_session == 3
    assert heard.count("session/update") == 5
    assert notes(tmp_path, "unknown_session") == ["no-such-session", "no sessionId", "no sessionId"]
    assert notes(tmp_path, "unknown_update") == ["made_up_update"]


def test_errors_of_the_agent_carry_their_kind_and_code(tmp_path: Path) -> None:
    with talking("rpc_error", tmp_path) as client:
        failure = turn(new_session(client)).failure
    assert failure is not None
    assert (failure.kind, failure.code) == ("rpc_error", -32603)
    assert "the model is down" in failure.what
    assert "internal_error" in failure.what


@pytest.mark.parametrize(
    ("code", "kind"),
    [(-32700, "parse_error"), (-32600, "invalid_request"), (-32601, "method_not_found"), (-32602, "invalid_params"),
     (-32603, "internal_error"), (-32000, "auth_required"), (17, "other")],
)  # fmt: skip
def test_json_rpc_errors_have_names(code: int, kind: str) -> None:
    assert jsonrpc.ErrorResponse(1, code, "x").kind == kind


def test_request_ids_count_up_and_find_their_answers(tmp_path: Path) -> None:
    with talking("echo", tmp_path) as client:
        first, second = new_session(client), new_session(client)
        turn(second, "b")
        turn(first, "a")
    sent = [json.loads(entry["line"]) for entry in transcript_entries(tmp_path) if entry["dir"] == "out"]
    assert [message["id"] for message in sent] == [1, 2, 3, 4, 5]


def test_ids_of_the_two_sides_may_collide(tmp_path: Path) -> None:
    with talking("collide", tmp_path) as client:
        result = turn(new_session(client))
        assert result.stop_reason == "end_turn"
        assert result.text.startswith("collided: ")
        assert '"optionId": "no"' in result.text
        assert client.defects["answer_to_nothing"] >= 8


# --- integration ---


def test_the_whole_initialization_flow(tmp_path: Path) -> None:
    client = make_client("echo", tmp_path)
    with pytest.raises(AgentFailure, match="not started"):
        client.initialize()
    client.start()
    try:
        answer = client.initialize()
        assert agent_info(answer) == ("scripted", "1.2.3")
        assert client.can_load_sessions
        with pytest.raises(BadInput, match="runs already"):
            client.start()
    finally:
        client.close()
    client.close()
    assert client.failure is not None


def test_sessions_are_created_and_loaded_and_replayed_history_is_not_counted(tmp_path: Path) -> None:
    with talking("echo", tmp_path) as client:
        client.load_session("sess-from-before")
        session = client.session("sess-from-before")
        assert session.replayed == 3
        assert session.text == ""
        assert turn(session, "new").text == "new"
        with pytest.raises(BadInput, match="there is no session"):
            client.session("nobody")


def test_sessions_are_only_loaded_if_the_agent_says_it_can(tmp_path: Path) -> None:
    with talking("plain", tmp_path) as client, pytest.raises(AgentFailure) as caught:
        client.load_session("s")
    assert caught.value.kind == "not_advertised"


def test_an_update_that_overtakes_its_session_is_delivered(tmp_path: Path) -> None:
    with talking("early", tmp_path) as client:
        session = new_session(client)
        assert [command.name for command in session.commands] == ["/early"]
        assert client.inbound.unknown_session == 1


def test_a_prompt_streams_its_answer_and_its_tool_calls(tmp_path: Path) -> None:
    told: list[tuple[str, Any]] = []
    with talking("tools", tmp_path) as client:
        session = new_session(client)
        session.on_chunk(lambda chunk: told.append(("chunk", chunk.text)))
        session.on_tool_call(lambda call: told.append(("call", call.call_id)))
        session.on_tool_update(lambda call: told.append(("update", call.status)))
        session.on_turn_end(lambda result: told.append(("end", result.stop_reason)))
        result = turn(session)
    assert told == [
        ("call", "c1"), ("update", "completed"), ("call", "c2"), ("update", "failed"), ("call", "c3"),
        ("chunk", "done"), ("end", "end_turn"),
    ]  # fmt: skip
    assert [call.call_id for call in result.unfinished] == ["c3"]


def test_a_cancel_answers_pending_permissions(tmp_path: Path) -> None:
    asked = threading.Event()
    with talking("cancel_while_asking", tmp_path, on_permission=lambda ask: asked.set()) as client:
        session = new_session(client)
        session.send_message("go")
        assert asked.wait(10)
        session.cancel()
        result = session.wait_turn(10)
        assert result is not None
        assert (result.stop_reason, result.text) == ("cancelled", "permission: cancelled")


def test_two_sessions_of_one_process_have_turns_at_the_same_time(tmp_path: Path) -> None:
    with talking("wait_for_cancel", tmp_path) as client:
        first, second = new_session(client), new_session(client)
        first.send_message("a")
        second.send_message("b")
        second.cancel()
        ended = second.wait_turn(10)
        assert ended is not None
        assert ended.text == "working"
        assert first.in_turn
        first.cancel()
        assert first.wait_turn(10) is not None


def test_modes_and_models_are_asked_for_and_what_is_confirmed_is_kept_apart(tmp_path: Path) -> None:
    with talking("options", tmp_path) as client:
        session = new_session(client)
        model = session.set_model("m2")
        assert (model.via, model.accepted, model.confirmed) == ("session/set_config_option", True, "m2")
        mode = session.set_mode("code")
        assert (mode.via, mode.accepted) == ("session/set_mode", True)
        wrong = session.set_mode("nonsense")
        assert not wrong.accepted
        assert wrong.confirmed in (None, "code"), "at most the agent's last word on the mode before"
        assert "no such mode" in wrong.error
    with talking("echo", tmp_path / "b") as client:
        plain = new_session(client).set_model("m9")
        assert (plain.via, plain.accepted, plain.confirmed) == ("session/set_model", True, None)


def test_images_are_sent_only_to_agents_that_take_them(tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG")
    with talking("echo", tmp_path) as client:
        session = new_session(client)
        session.send_image(str(picture), "look")
        assert session.wait_turn(10) is not None
    sent = [json.loads(entry["line"]) for entry in transcript_entries(tmp_path) if entry["dir"] == "out"]
    assert sent[-1]["params"]["prompt"][1] == {"type": "image", "mimeType": "image/png", "data": "iVBORw=="}
    with talking("plain", tmp_path / "b") as client, pytest.raises(AgentFailure, match="no images"):
        new_session(client).send_image(str(picture))
    assert dialect.image_block("kiro", picture)["source"] == {"type": "file", "path": str(picture)}


@has_schema
@pytest.mark.parametrize("behaviour", ["tools", "asks", "options", "forbidden", "usage", "early", "oauth"])
def test_what_we_send_conforms_to_the_official_schema(behaviour: str, tmp_path: Path) -> None:
    with talking(behaviour, tmp_path, on_permission=by_policy(Policy(frozenset({"edit"})))) as client:
        session = new_session(client)
        session.set_mode("code")
        client.load_session("other")
        turn(session)
        session.cancel()
    found, checked = problems(tmp_path / "acp_transcript.jsonl", directions=("out",))
    assert found == []
    assert checked >= 5


# --- kiro ---


def test_kiros_notifications_reach_their_callbacks(tmp_path: Path) -> None:
    told: dict[str, Any] = {}
    with talking("kiro", tmp_path, dialect="kiro") as client:
        session = new_session(client)
        session.on_commands_available(lambda commands: told.update(commands=[item.name for item in commands]))
        session.on_compaction_status(lambda status: told.update(compaction=(status.status, status.progress)))
        session.on("cleared", lambda status: told.update(cleared=status.status))
        session.on_mcp_event(lambda event: told.setdefault("mcp", []).append((event.kind, event.server, event.url)))
        result = turn(session)
        assert client.inbound.refused == {"_kiro.dev/mcp/oauth_request": 1}
    assert told == {
        "commands": ["/agent", "/context"],
        "compaction": ("compacting", 0.5),
        "cleared": "cleared",
        "mcp": [("server_initialized", "github", ""), ("oauth_request", "github", "https://github.example/login")],
    }
    assert (result.text, result.tool_calls, result.turn_end_noted) == ("kiro says hello", 1, True)


def test_slash_commands_are_executed_and_completed(tmp_path: Path) -> None:
    with talking("kiro", tmp_path, dialect="kiro") as client:
        session = new_session(client)
        assert client.execute_command(session.session_id, "/agent list") == {"output": "ran /agent list"}
        assert client.command_options(session.session_id, "/agent") == {"options": ["list", "swap"]}


def test_a_session_that_the_agent_terminates_says_so(tmp_path: Path) -> None:
    with talking("kiro", tmp_path, dialect="kiro") as client:
        session = new_session(client)
        turn(session, "terminate")
        assert session.terminated == "idle too long"


# --- compatibility ---


def stand_in_kiro(folder: Path, *, with_acp: bool) -> str:
    """A program called kiro-cli: a chat that prints text, with or without an `acp` subcommand."""
    path = folder / "kiro-cli"
    chat = 'printf "\\033[32mwelcome\\033[0m\\n> "; while read -r line; do printf "you said %s\\n> " "$line"; done'
    agent = f'[ "$2" = --help ] && {{ echo usage; exit 0; }}; exec {sys.executable} {AGENT} kiro'
    acp = agent if with_acp else "exit 2"
    path.write_text(f'#!/bin/sh\nif [ "$1" = acp ]; then {acp}; fi\n{chat}\n')
    path.chmod(0o755)
    return str(path)


def test_a_kiro_with_acp_is_found_by_its_subcommand(tmp_path: Path) -> None:
    program = stand_in_kiro(tmp_path, with_acp=True)
    assert supports_acp([program])
    found = detect([program], cwd=tmp_path, dialect="kiro", timeout_s=10)
    assert (found.protocol, found.command) == ("acp", (program, "acp"))
    client = ACPClient(tmp_path, found.command, dialect="kiro")
    client.start()
    try:
        client.initialize(10)
        assert turn(new_session(client)).text == "kiro says hello"
    finally:
        client.close()


def test_an_old_kiro_falls_back_to_text(tmp_path: Path) -> None:
    program = stand_in_kiro(tmp_path, with_acp=False)
    assert not supports_acp([program])
    found = detect([program], cwd=tmp_path, timeout_s=1.0)
    assert found.protocol == "text"
    assert "no ACP" in found.reason
    assert not supports_acp([str(tmp_path / "nothing-here")])


@pytest.mark.parametrize(("behaviour", "said"), [("version_9", "version 9"), ("no_version", "version None")])
def test_another_protocol_version_is_refused(behaviour: str, said: str, tmp_path: Path) -> None:
    client = make_client(behaviour, tmp_path)
    client.start()
    try:
        with pytest.raises(AgentFailure, match=said) as caught:
            client.initialize()
        assert caught.value.kind == "protocol_version"
    finally:
        client.close(0.2)


def test_capabilities_are_what_the_agent_said_and_nothing_else(tmp_path: Path) -> None:
    with talking("plain", tmp_path) as client:
        assert not client.can_load_sessions
        assert not client.prompt_capability("image")
        assert not client.prompt_capability("audio")


def test_a_dead_agent_is_started_again(tmp_path: Path) -> None:
    with talking("exits", tmp_path) as client:
        failure = turn(new_session(client)).failure
        assert failure is not None
        assert failure.kind == "exited"
        client.restart()
        assert client.failure is None
        assert client.sessions == {}
        new_session(client)


# --- size ---


def test_twenty_thousand_updates_arrive_in_order(tmp_path: Path) -> None:
    with talking("many_updates", tmp_path) as client:
        session = new_session(client)
        result = turn(session, timeout_s=60)
    assert result.updates == 20_000
    assert result.text.split() == [str(number) for number in range(20_000)]


def test_memory_does_not_grow_with_the_number_of_updates(tmp_path: Path) -> None:
    peaks = []
    with talking("many_thoughts", tmp_path) as client:
        session = new_session(client)
        turn(session, "100")
        for count in (2_000, 20_000):
            tracemalloc.start()
            assert turn(session, str(count), 60).updates == count
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < peaks[0] * 2 + 200_000


def test_a_megabyte_a_second_of_stderr_does_not_stall_the_turn(tmp_path: Path) -> None:
    with talking("stderr_steady", tmp_path) as client:
        result = turn(new_session(client))
        assert result.stop_reason == "end_turn"
        assert result.updates == 100
        wait_until(lambda: client.stderr.total == 2_000_000, "all of stderr is counted")
        captured = client.stderr.captured()
    assert captured.truncated
    assert len(captured.head) + len(captured.tail) <= 1 << 19


def test_a_driven_turn_is_cancelled_when_there_is_a_reason(tmp_path: Path) -> None:
    with talking("wait_for_cancel", tmp_path) as client:
        driven = drive_turn(new_session(client), [dialect.text_block("x")], deadline=1e18, poll=lambda: "enough")
    assert (driven.stopped, driven.result.stop_reason, driven.cancel_ignored) == ("enough", "cancelled", False)
