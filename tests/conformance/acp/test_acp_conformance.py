"""Each folder here is one line of ACP and what we make of it.

Numbered folders are the examples of the Kiro dialect in the order of a conversation: `in` is read, `out` is what our
client writes, the same JSON value by value (one path is made neutral). `_fail` holds a line that is no message.
"""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from labaudit.engines.protocol import Streams
from labaudit.harnesses.acp.client.client import ACPClient
from labaudit.harnesses.acp.wire import extensions, jsonrpc, updates

HERE = Path(__file__).resolve().parent
FOLDERS = sorted(path.name for path in HERE.iterdir() if (path / "expected.json").is_file())
MESSAGES = [name for name in FOLDERS if not name.endswith("_fail")]
REFUSED = [name for name in FOLDERS if name.endswith("_fail")]
KINDS = {"request": jsonrpc.Request, "notification": jsonrpc.Notification, "response": jsonrpc.Response}


def expected(case: str) -> dict[str, Any]:
    return dict(json.loads((HERE / case / "expected.json").read_text(encoding="utf-8")))


def message(case: str) -> dict[str, Any]:
    return dict(json.loads((HERE / case / "message.json").read_text(encoding="utf-8")))


def test_there_are_twenty_two_examples() -> None:
    assert len(MESSAGES) == 22
    assert [name[:2] for name in MESSAGES] == [f"{number:02d}" for number in range(1, 23)]


@pytest.mark.parametrize("case", MESSAGES)
def test_the_message_is_read_as_what_it_is(case: str) -> None:
    wanted = expected(case)
    read = jsonrpc.read_message(json.dumps(message(case)).encode())
    assert type(read) is KINDS[wanted["message"]]
    if "says" not in wanted:
        return
    assert isinstance(read, jsonrpc.Notification)
    reader = extensions.read_extension if extensions.is_extension(read.method) else None
    session, said = reader(read.method, read.params) if reader else updates.read_update(read.params)
    assert session == wanted["session"]
    assert {type(said).__name__: json.loads(json.dumps(dataclasses.asdict(said)))} == wanted["says"]


@pytest.mark.parametrize("case", REFUSED)
def test_a_line_that_is_no_message_is_named_by_its_defect(case: str) -> None:
    read = jsonrpc.read_message((HERE / case / "line.bin").read_bytes())
    assert isinstance(read, jsonrpc.Malformed)
    assert read.defect == expected(case)["defect"]


class Peer:
    """The agent's end of two pipes, played from the case folders."""

    def __init__(self) -> None:
        (in_read, in_write), (out_read, out_write), (err_read, self._err) = os.pipe(), os.pipe(), os.pipe()
        self._heard: BinaryIO = os.fdopen(in_read, "rb")
        self._speaks = out_write
        self.streams = Streams(
            os.fdopen(in_write, "wb", buffering=0), os.fdopen(out_read, "rb", buffering=0), os.fdopen(err_read, "rb")
        )
        self.heard: dict[str, dict[str, Any]] = {}
        self._stopped = False
        self._thread = threading.Thread(target=self._play, daemon=True)

    def open(self) -> Streams:
        self._thread.start()
        return self.streams

    def running(self) -> bool:
        return not self._stopped

    def ending(self) -> str:
        return ""

    def stop(self, grace_s: float) -> None:
        if not self._stopped:
            self._stopped = True
            os.close(self._speaks)
            os.close(self._err)

    def _play(self) -> None:
        """Hears an `out` example's counterpart, then says every `in` example up to the next `out`."""
        for line in self._heard:
            said = json.loads(line)
            case = next(name for name in MESSAGES if name not in self.heard and _answers(name, said))
            self.heard[case] = said
            for name in MESSAGES[MESSAGES.index(case) + 1 :]:
                if expected(name)["direction"] == "out":
                    break
                os.write(self._speaks, json.dumps(message(name)).encode() + b"\n")


def _answers(case: str, said: dict[str, Any]) -> bool:
    return expected(case)["direction"] == "out" and message(case)["method"] == said["method"]


def test_our_client_speaks_and_understands_the_whole_conversation() -> None:
    peer = Peer()
    client = ACPClient(
        "/path/remote-kiro", dialect="kiro", link=lambda: peer, name="telegram-kiro-bot", version="1.0.0"
    )
    client.start()
    agent = client.initialize()
    assert agent["agentInfo"] == {"name": "kiro-cli", "version": "1.5.0"}
    assert client.can_load_sessions
    assert client.prompt_capability("image")
    session_id = client.create_session("/path/remote-kiro")
    session = client.session(session_id)
    told: dict[str, list[Any]] = {name: [] for name in ("commands_available", "compaction_status", "mcp_event")}
    session.on_commands_available(told["commands_available"].append)
    session.on_compaction_status(told["compaction_status"].append)
    session.on_mcp_event(told["mcp_event"].append)
    session.send_message("What files are in this directory?")
    result = session.wait_turn(10)
    assert result is not None
    assert (result.stop_reason, result.text, result.turn_end_noted) == ("end_turn", "I'll list the files...", True)
    assert [call.call_id for call in result.unfinished] == ["tool_1"]
    session.cancel()
    assert client.load_session(session_id)["cwd"] == "/path/remote-kiro"
    assert client.set_mode(session_id, "facebook_dev").accepted
    assert client.set_model(session_id, "claude-3-5-sonnet-20241022").accepted
    answer = client.execute_command(session_id, "/agent swap facebook_dev")
    assert answer["output"] == "Switched to agent: facebook_dev"
    for _ in range(200):
        if len(told["mcp_event"]) == 2:
            break
        threading.Event().wait(0.02)
    client.close(0.2)
    assert [len(told[name]) for name in sorted(told)] == [1, 1, 2]
    assert client.inbound.refused == {"_kiro.dev/mcp/oauth_request": 1}
    assert client.defects == {}
    sent = [name for name in MESSAGES if expected(name)["direction"] == "out"]
    assert sorted(peer.heard) == sent
    assert {name: peer.heard[name] for name in sent} == {name: message(name) for name in sent}
