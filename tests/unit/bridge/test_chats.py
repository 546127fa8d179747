"""Conversations that outlive a restart, and the rules of a chat, without any chat platform."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from labaudit.bridge.agents import AgentManager, AgentSpec
from labaudit.bridge.chat import ChatBridge, ChatOptions, parse_allowed
from labaudit.bridge.conversations import Conversation, ConversationStore
from labaudit.bridge.room import RoomOptions
from labaudit.bridge.turn_view import Buttons, Undelivered
from labaudit.errors import BadInput
from labaudit.harnesses.acp.client.turn import ToolCall
from labaudit.store.lab_folder import LabFolder
from tests.unit.acp.talk import AGENT


class Paper:
    """A chat platform that writes everything down; `broken` refuses to."""

    def __init__(self) -> None:
        self.shown: dict[int, str] = {}
        self.buttons: dict[int, Buttons] = {}
        self.broken = False

    def send(self, chat_id: int, text: str, buttons: Buttons = ()) -> int:
        if self.broken:
            raise Undelivered("broken")
        number = len(self.shown) + 1
        self.shown[number], self.buttons[number] = text, buttons
        return number

    def edit(self, chat_id: int, message_id: int, text: str, buttons: Buttons = ()) -> None:
        if self.broken:
            raise Undelivered("broken")
        self.shown[message_id], self.buttons[message_id] = text, buttons

    def typing(self, chat_id: int) -> None:
        return

    @property
    def texts(self) -> list[str]:
        return list(self.shown.values())


class Unwatched:
    """A turn that nobody looks at."""

    def chunk(self, text: str) -> None:
        return

    def tool(self, call: ToolCall) -> None:
        return

    def notice(self, text: str) -> None:
        return


class Chat:
    """One bridge with one allowed chat."""

    def __init__(
        self,
        folder: Path,
        behaviour: str,
        *,
        rate: int = 100,
        permission_timeout_s: float = 20.0,
        spec: AgentSpec | None = None,
    ) -> None:
        self.lab = LabFolder(folder / ".lab")
        self.paper = Paper()
        spec = spec or AgentSpec("one", (sys.executable, str(AGENT), behaviour), str(folder), "acp")
        self.manager = AgentManager(self.lab, [spec], signer=None)
        room = RoomOptions(20.0, permission_timeout_s, 0.05)
        self.bridge = ChatBridge(
            self.manager, ConversationStore(folder / "state"), self.paper,
            ChatOptions(frozenset({1}), messages_per_minute=rate, room=room), folder / "images",
        )  # fmt: skip

    def say(self, text: str) -> list[str]:
        self.bridge.on_text(1, text)
        assert self.bridge.wait_idle(90)
        return self.paper.texts


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Chat]:
    made = Chat(tmp_path, "chat")
    yield made
    made.bridge.close()


def test_the_older_format_is_migrated_when_it_is_read(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path)
    old = {
        "current_agent": "one", "timestamp": 1704067200.0, "working_directory": "/path",
        "conversation_history": [{"role": "user", "content": "hi"}],
    }  # fmt: skip
    store.path("c").parent.mkdir(exist_ok=True)
    store.path("c").write_text(json.dumps(old, indent=1))
    assert store.load("c") == Conversation("one", None, "/path", 1704067200.0)
    assert json.loads(store.path("c").read_text()) == {
        "current_agent": "one", "session_id": None, "timestamp": 1704067200.0, "working_directory": "/path",
    }  # fmt: skip
    assert json.loads((tmp_path / "c.history.json").read_text()) == old["conversation_history"]
    assert store.load("c") == Conversation("one", None, "/path", 1704067200.0)


def test_a_conversation_is_kept_by_its_session_id(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path)
    assert store.load("c") is None
    saved = store.save("c", Conversation("one", "sess_abc123", "/path"))
    assert store.load("c") == saved
    assert store.path("c").stat().st_mode & 0o777 == 0o600
    assert sorted(json.loads(store.path("c").read_text())) == [
        "current_agent", "session_id", "timestamp", "working_directory",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"current_agent": 1}', '{"current_agent":"a","working_directory":"/","session_id":5}']
)
def test_a_file_that_is_no_conversation_is_refused_by_name(text: str, tmp_path: Path) -> None:
    store = ConversationStore(tmp_path)
    store.path("c").write_text(text)
    with pytest.raises(BadInput) as caught:
        store.load("c")
    assert str(store.path("c")) in caught.value.where


def test_chat_ids_are_whole_numbers_and_there_is_at_least_one() -> None:
    assert parse_allowed(["1, -1002", "3"]) == frozenset({1, -1002, 3})
    for bad in ([], [""], ["me"], ["1.5"]):
        with pytest.raises(BadInput):
            parse_allowed(bad)


def test_too_many_messages_are_left_unread(tmp_path: Path) -> None:
    made = Chat(tmp_path, "chat", rate=2)
    try:
        made.say("a")
        made.say("b")
        texts = made.say("c")
        made.say("d")
        assert sum("Too many messages" in text for text in texts) == 1
        assert not any(text.endswith(": c") for text in texts)
    finally:
        made.bridge.close()


def test_a_question_that_nobody_answers_is_answered_with_cancelled(tmp_path: Path) -> None:
    made = Chat(tmp_path, "asks", permission_timeout_s=0.3)
    try:
        texts = made.say("go")
        assert "permission: cancelled" in texts
        assert any("nobody answered in time" in text for text in texts)
        assert made.bridge.on_button(1, "p:1:0") == "This question is closed."
    finally:
        made.bridge.close()


def test_a_platform_that_takes_no_messages_does_not_end_the_agents_turn(chat: Chat) -> None:
    chat.paper.broken = True
    chat.say("lost words")
    chat.paper.broken = False
    assert any(text.endswith("found words") for text in chat.say("found words"))
    (record,) = chat.lab.sessions.iterdir()
    assert b"lost words" in (record / "acp_transcript.jsonl").read_bytes()


def test_help_lists_the_commands_and_unknown_buttons_do_nothing(chat: Chat) -> None:
    assert any("/cancel - end the running turn" in text for text in chat.say("/help"))
    assert chat.bridge.on_button(1, "x") == "This button does nothing."
    assert chat.bridge.on_button(2, "p:1:0") == "This button does nothing."
    assert any("Nothing is running." in text for text in chat.say("/cancel"))


def test_a_line_after_prompt_is_sent_as_it_is(chat: Chat) -> None:
    assert any(text.endswith(": /not a command") for text in chat.say("/prompt /not a command"))
    assert "There is nothing to send." in chat.say("/prompt")


def test_an_agent_that_cannot_start_is_told_to_the_chat(tmp_path: Path) -> None:
    made = Chat(tmp_path, "exit_at_once")
    try:
        assert any(text.startswith("That did not work: the agent ended") for text in made.say("hello"))
        assert any("idle" in text for text in made.say("/status"))
    finally:
        made.bridge.close()


def test_an_agent_that_only_prints_text_is_talked_to_and_said_to_be_one(tmp_path: Path) -> None:
    program = tmp_path / "chat.sh"
    program.write_text('printf "> "; while read -r line; do printf "heard %s\\n> " "$line"; done\n')
    made = Chat(tmp_path, "", spec=AgentSpec("old", ("sh", str(program)), str(tmp_path), "text"))
    try:
        texts = made.say("hello")
        assert "heard hello" in texts
        assert any("prints text only" in text for text in texts)
        assert any("no mode to set" in text for text in made.say("/mode code"))
    finally:
        made.bridge.close()
    (record,) = made.lab.sessions.iterdir()
    assert json.loads((record / "session.json").read_text())["protocol"] == "text"
    assert (record / "manifest.json").is_file()


def test_no_start_of_an_agent_sees_the_token_and_each_sees_its_own_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, program = tmp_path / "seen", tmp_path / "agent"
    program.write_text(f'#!/bin/sh\necho "$1:$BOT_TOKEN:$MODEL_KEY" >> {seen}\nprintf "> "; read -r line; echo hi\n')
    program.chmod(0o755)
    hidden = {"BOT_TOKEN": "token-of-the-bot", "MODEL_KEY": "key-of-the-model"}
    for name, value in hidden.items():
        monkeypatch.setenv(name, value)
    spec = AgentSpec("one", (str(program),), str(tmp_path), "auto")
    manager = AgentManager(
        LabFolder(tmp_path / ".lab"), [spec], signer=None, secrets=hidden, withheld=("BOT_TOKEN",), start_timeout_s=30.0
    )
    opened = manager.open("1", "one", None, Unwatched(), lambda ask: None)
    opened.partner.close()
    # Asked for help, asked to initialize (as `acp`, then bare), and started to be talked to.
    assert seen.read_text().splitlines() == [f"{word}::key-of-the-model" for word in ("acp", "acp", "", "")]


def test_kiros_own_slash_commands_are_executed_and_unknown_ones_named(tmp_path: Path) -> None:
    spec = AgentSpec("kiro", (sys.executable, str(AGENT), "kiro"), str(tmp_path), "acp", "kiro")
    made = Chat(tmp_path, "kiro", spec=spec)
    try:
        assert "kiro says hello" in made.say("hello")
        assert "ran /context list" in made.say("/context list")
        assert any("Neither the bridge nor the agent has /nonsense" in text for text in made.say("/nonsense"))
        assert any("/context - Manage context" in text for text in made.say("/help"))
        texts = made.say("terminate")
        assert any("The agent is gone" in text for text in texts)
        assert any(text.startswith("session: none yet") or "session: none" in text for text in made.say("/status"))
    finally:
        made.bridge.close()
    assert len(list(made.lab.sessions.iterdir())) == 1
