"""The Telegram bridge as people run it: the real program against a stand-in Bot API on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labaudit.attest.keys import PublicKey
from labaudit.core.digest import Digest
from labaudit.store.event_log import read_events
from labaudit.store.session_folder import SessionFolder
from labaudit.verify.request import Anchors, Request
from labaudit.verify.targets import verify_target
from tests.unit.acp.talk import AGENT
from tests.unit.bridge.bot_api import TOKEN, BotApi

STRANGER = 6666
CHATS = range(7001, 7021)
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489")


class Running:
    """The bridge as a child process."""

    def __init__(self, api: BotApi, folder: Path) -> None:
        self.api = api
        self.lab = folder / ".lab"
        self.log = folder / "bridge.log"
        self._folder = folder
        self.start()

    def start(self) -> None:
        command = [
            sys.executable, "-m", "labaudit", "bridge", "telegram", "--api-url", self.api.url,
            "--agent", f"one={sys.executable} {AGENT} chat", "--agent", f"two={sys.executable} {AGENT} tools",
            "--lab-dir", str(self.lab), "--cwd", str(self._folder), "--edit-every", "0.1", "--protocol", "acp",
            "--messages-per-minute", "1000",
            "--allow", " ".join(map(str, CHATS)),
        ]  # fmt: skip
        self._stream = self.log.open("ab")
        self.process = subprocess.Popen(
            command, stdout=self._stream, stderr=self._stream, env={**os.environ, "TELEGRAM_BOT_TOKEN": TOKEN}
        )

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        code = self.process.wait(90)
        self._stream.close()
        return code

    def say(self, chat: int, text: str) -> None:
        """Says something once the chat is idle; a message in the middle of a turn would be refused."""
        for _ in range(100):
            self.api.forget("idle", chat)
            self.api.forget("busy", chat)
            self.api.say(chat, "/status")
            if "idle" in self.api.wait_for("agent: ", chat)["text"]:
                break
            self.api.forget("agent: ", chat)
            time.sleep(0.02)
        self.api.forget("agent: ", chat)
        self.api.say(chat, text)

    def seal(self, chat: int) -> None:
        """Ends the chat's record, as a person does who starts anew."""
        self.say(chat, "/new")
        self.api.wait_for("starts a new session", chat)

    def records(self, chat: int) -> list[SessionFolder]:
        """The chat's records, oldest first."""
        digest = Digest.of(f"telegram-{chat}".encode())
        heads = [(json.loads((path / "session.json").read_text()), path) for path in (self.lab / "sessions").iterdir()]
        own = sorted((head["created_at"], path) for head, path in heads if head["chat_digest"] == digest)
        return [SessionFolder(path) for _, path in own]

    def events(self, record: SessionFolder) -> list[tuple[str, Any]]:
        return [
            (
                str(event["event_type"]),
                json.loads(record.artifacts.get(str(event["payload_ref"]))) if "payload_ref" in event else None,
            )
            for event in read_events(record.events)
        ]

    def verdict(self, record: SessionFolder) -> str:
        key = PublicKey.load(self.lab / "keys" / "labaudit.pub")
        return verify_target(record.path, Request(Anchors(keys=(key,)))).verdict


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One bridge for all tests that need none of their own; each test has a chat of its own."""
    api = BotApi()
    bridge = Running(api, tmp_path_factory.mktemp("shared"))
    yield bridge
    code = bridge.stop()
    api.close()
    assert code == 0


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A bridge to be restarted and killed."""
    api = BotApi()
    bridge = Running(api, tmp_path)
    yield bridge
    if bridge.process.poll() is None:
        bridge.stop(signal.SIGKILL)
    api.close()


def test_a_conversation_is_streamed_recorded_and_verifies(shared: Running) -> None:
    api, me = shared.api, 7001
    shared.say(me, "hello there")
    api.wait_for("new sess-1: hello there", me)
    shared.say(me, "tools")
    api.wait_for("Run b: failed", me)
    api.wait_for("done", me)
    shared.say(me, "/status")
    assert "idle" in api.wait_for("agent: one", me)["text"]
    shared.seal(me)
    (record,) = shared.records(me)
    kinds = [kind for kind, _ in shared.events(record)]
    assert kinds.count("prompt.sent") == 2
    assert kinds.count("tool_call.ended") == 2
    assert kinds[0] == "session.opened"
    assert kinds[-1] == "trial.sealed"
    assert shared.verdict(record) == "verified"
    record.transcript.write_bytes(record.transcript.read_bytes().replace(b"hello there", b"hello thexe"))
    assert shared.verdict(record) == "failed"


def test_a_permission_is_decided_by_button(shared: Running) -> None:
    api, me = shared.api, 7002
    shared.say(me, "permission")
    question = api.wait_for("asks for permission: Edit file", me)
    labels = [button["text"] for button in question["buttons"]]
    assert labels == ["Allow", "Reject"], "a standing grant is never on offer"
    api.press(STRANGER, question["id"], question["buttons"][0]["callback_data"])
    api.press(me, question["id"], question["buttons"][0]["callback_data"])
    api.wait_for("permission: yes", me)
    settled = api.wait_for("Edit file: allow once", me)
    assert settled["buttons"] == []
    api.press(me, question["id"], question["buttons"][1]["callback_data"])
    shared.seal(me)
    events = shared.events(shared.records(me)[0])
    decided = [payload for kind, payload in events if kind == "permission.decided"]
    assert [(item["decision"], item["reason"]) for item in decided] == [("allow_once", "chosen in the chat")]
    assert any(kind == "permission.shown" for kind, _ in events)


def test_a_cancel_ends_the_turn_and_a_second_message_meanwhile_is_told_so(shared: Running) -> None:
    api, me = shared.api, 7003
    shared.say(me, "wait")
    api.wait_for("working", me)
    api.say(me, "are you there?")
    api.wait_for("A turn is running", me)
    api.say(me, "/cancel")
    api.wait_for("cancelled in the chat", me)
    shared.say(me, "and now?")
    api.wait_for("new sess-1: and now?", me)
    shared.seal(me)
    ended = [payload for kind, payload in shared.events(shared.records(me)[0]) if kind == "turn.ended"]
    assert [item["stop_reason"] for item in ended] == ["cancelled", "end_turn"]


def test_a_restart_reloads_the_session_and_links_the_records(running: Running) -> None:
    api, me = running.api, 7004
    running.say(me, "first")
    api.wait_for("new sess-1: first", me)
    assert running.stop() == 0
    running.start()
    running.say(me, "second")
    api.wait_for("reloaded sess-1: second", me)
    assert running.stop() == 0
    one, two = running.records(me)
    head = json.loads(two.session.read_text())
    assert head["previous"]["session_id"] == one.session_id
    assert "manifest_digest" in head["previous"]
    loaded = [payload for kind, payload in running.events(two) if kind == "acp.session_loaded"]
    assert loaded == [{"acp_session_id": "sess-1", "replayed_updates": 3}]
    assert [running.verdict(record) for record in (one, two)] == ["verified"] * 2


def test_a_killed_bridge_leaves_a_record_that_the_next_start_seals(running: Running) -> None:
    api, me = running.api, 7005
    running.say(me, "before the crash")
    api.wait_for("before the crash", me)
    running.stop(signal.SIGKILL)
    record = running.records(me)[0]
    assert not record.sealed
    with record.events.open("ab") as stream:
        stream.write(b'{"torn":')
    running.start()
    running.say(me, "after")
    api.wait_for("reloaded sess-1: after", me)
    assert running.stop() == 0
    assert "session.interrupted" in [kind for kind, _ in running.events(record)]
    assert [running.verdict(item) for item in running.records(me)] == ["verified"] * 2


def test_a_stranger_is_refused_and_nothing_of_theirs_is_kept(shared: Running) -> None:
    api, me = shared.api, 7006
    api.say(STRANGER, "let me in with words-that-must-not-be-kept")
    api.wait_for("This bot is private.", STRANGER)
    api.say(STRANGER, "/status")
    api.show(STRANGER, PNG, "words-that-must-not-be-kept")
    shared.say(me, "still here")
    api.wait_for("still here", me)
    shared.seal(me)
    assert api.texts(STRANGER) == ["This bot is private."]
    assert not any(method == "getFile" for method, _ in api.calls)
    kept = [path for path in shared.lab.rglob("*") if path.is_file()]
    assert kept
    assert not any(b"words-that-must-not-be-kept" in path.read_bytes() for path in [*kept, shared.log])


def test_the_token_reaches_neither_disk_nor_log_nor_agent(shared: Running) -> None:
    api, me = shared.api, 7007
    shared.say(me, "token")
    api.wait_for("token: not there", me)
    shared.say(me, f"my token is {TOKEN}")
    api.wait_for("my token is", me)
    shared.seal(me)
    files = [path for path in shared.lab.rglob("*") if path.is_file()] + [shared.log]
    assert len(files) > 5
    assert [path for path in files if TOKEN.encode() in path.read_bytes()] == []


def test_agents_modes_and_models_are_switched_by_command(shared: Running) -> None:
    api, me = shared.api, 7008
    shared.say(me, "/mode code")
    api.wait_for("mode is code", me)
    shared.say(me, "/mode nonsense")
    api.wait_for("mode nonsense: refused", me)
    shared.say(me, "/model m9")
    api.wait_for("model m9: accepted; the agent says nothing", me)
    shared.say(me, "/agent two")
    api.wait_for("Talking to two", me)
    shared.say(me, "go")
    api.wait_for("Read a: completed", me)
    api.wait_for("done", me)
    shared.say(me, "/agent nobody")
    api.wait_for("there is no agent 'nobody'", me)
    shared.seal(me)
    assert len(shared.records(me)) == 2
    saved = json.loads((shared.lab / "bridge" / "telegram" / f"telegram-{me}.json").read_text())
    assert sorted(saved) == ["current_agent", "session_id", "timestamp", "working_directory"]
    assert saved["current_agent"] == "two"


def test_an_image_reaches_the_agent_and_the_record(shared: Running) -> None:
    api, me = shared.api, 7009
    api.show(me, PNG, "")
    api.wait_for("image", me)
    shared.seal(me)
    record = shared.records(me)[0]
    stored = [payload["artifact"] for kind, payload in shared.events(record) if kind == "chat.image"]
    assert record.artifacts.get(stored[0]) == PNG
    assert not list((shared.lab / "bridge" / "telegram" / "images").iterdir())


def test_a_dead_agent_is_told_of_and_started_again(shared: Running) -> None:
    api, me = shared.api, 7010
    shared.say(me, "die")
    api.wait_for("half an ans", me)
    api.wait_for("The agent is gone", me)
    shared.say(me, "back?")
    api.wait_for("reloaded sess-1: back?", me)
    shared.seal(me)
    assert [shared.verdict(record) for record in shared.records(me)] == ["verified"] * 2


def test_a_sign_in_link_is_shown_to_the_chat_and_recorded(shared: Running) -> None:
    api, me = shared.api, 7011
    shared.say(me, "oauth")
    api.wait_for("https://github.example/login?x=1", me)
    shared.seal(me)
    events = shared.events(shared.records(me)[0])
    assert [payload["url"] for kind, payload in events if kind == "mcp.event"] == ["https://github.example/login?x=1"]


def test_a_long_answer_is_split_and_a_rate_limit_is_waited_for(shared: Running) -> None:
    api, me = shared.api, 7012
    shared.say(me, "hello")
    api.wait_for("hello", me)
    api.limit_next_send = 1
    shared.say(me, "long")
    for _ in range(1200):
        answers = [text for text in api.texts(me) if text.startswith("word")]
        if sum(map(len, answers)) >= 9_990:
            break
        time.sleep(0.05)
    assert max(map(len, answers)) <= 4000
    assert len(answers) == 3
    shared.seal(me)
