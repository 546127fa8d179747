"""A chat's live agent: one message in, a watched turn, one ending out. Two kinds: ACP, and text only."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from labaudit.bridge.agent_log import AgentLog
from labaudit.bridge.recording import SessionRecorder
from labaudit.bridge.watching import record_failure, record_prompt, record_setting
from labaudit.harnesses.acp.client.client import ACPClient
from labaudit.harnesses.acp.client.driving import drive_turn
from labaudit.harnesses.acp.client.failures import AgentFailure
from labaudit.harnesses.acp.client.session import ACPSession
from labaudit.harnesses.acp.client.settings import Setting, SettingName
from labaudit.harnesses.acp.client.text_agent import TextAgent
from labaudit.harnesses.acp.client.turn import ToolCall
from labaudit.harnesses.acp.wire.extensions import OAUTH, CompactionStatus, McpEvent
from labaudit.harnesses.acp.wire.updates import Chunk

Blocks = Sequence[dict[str, object]]
CANCELLED = "cancelled in the chat"
# Agents that confirm a mode do so by an update right after their answer.
CONFIRMED_WITHIN_S = 0.5


class TurnWatcher(Protocol):
    """Whoever shows a turn to people. Called on the reading thread: be quick, send nothing from here."""

    def chunk(self, text: str) -> None:
        """A piece of the answer."""
        ...

    def tool(self, call: ToolCall) -> None:
        """A tool call that is new or changed."""
        ...

    def notice(self, text: str) -> None:
        """Something that people should know: a compaction, a sign-in link."""
        ...


@dataclass(frozen=True)
class Ending:
    """How a message was answered."""

    text: str
    note: str = ""
    """Empty when the agent simply finished."""
    alive: bool = True


class Partner(Protocol):
    """What a chat needs of its agent."""

    name: str
    recorder: SessionRecorder

    @property
    def session_id(self) -> str | None: ...
    @property
    def alive(self) -> bool: ...
    @property
    def takes_images(self) -> bool: ...
    def ask(self, blocks: Blocks, timeout_s: float, poll: Callable[[], str | None]) -> Ending: ...
    def command(self, text: str) -> str | None: ...
    def set(self, name: SettingName, value: str) -> Setting: ...
    def choices(self, name: SettingName) -> tuple[str | None, tuple[str, ...]]: ...
    def commands(self) -> Mapping[str, str]: ...
    def close(self) -> None: ...


class AcpPartner:
    """An agent over ACP."""

    def __init__(
        self,
        name: str,
        recorder: SessionRecorder,
        client: ACPClient,
        session: ACPSession,
        watcher: TurnWatcher,
        log: AgentLog,
    ) -> None:
        self._log = log
        self.name = name
        self.recorder = recorder
        self.client = client
        self.session = session

        def mcp(event: McpEvent) -> None:
            if event.kind == OAUTH and event.url:
                watcher.notice(f"{event.server or 'An MCP server'} asks for a sign-in: {event.url}")

        def compaction(status: CompactionStatus) -> None:
            watcher.notice(f"context: {status.status}")

        def chunk(piece: Chunk) -> None:
            watcher.chunk(piece.text)

        session.on_chunk(chunk)
        session.on_tool_call(watcher.tool)
        session.on_tool_update(watcher.tool)
        session.on_mcp_event(mcp)
        session.on_compaction_status(compaction)

    @property
    def session_id(self) -> str | None:
        """The agent's own id of the session; None once the agent ended it."""
        return None if self.session.terminated else self.session.session_id

    @property
    def alive(self) -> bool:
        """False when the process is gone or the agent ended the session."""
        return self.client.failure is None and self.session.terminated is None

    @property
    def takes_images(self) -> bool:
        """As the agent advertised."""
        return self.client.prompt_capability("image")

    def ask(self, blocks: Blocks, timeout_s: float, poll: Callable[[], str | None]) -> Ending:
        """One turn; `poll` may give a reason to cancel it."""
        record_prompt(self.recorder, self.session.session_id, [_described(block) for block in blocks])
        driven = drive_turn(self.session, blocks, deadline=time.monotonic() + timeout_s, poll=poll, grace_s=5.0)
        result = driven.result
        if result.failure is not None:
            record_failure(self.recorder, result.failure)
            return Ending(result.text, result.failure.what, self.alive)
        if driven.stopped is not None:
            return Ending(result.text, driven.stopped)
        return Ending(result.text, "" if result.stop_reason == "end_turn" else f"ended: {result.stop_reason}")

    def command(self, text: str) -> str | None:
        """Runs one of Kiro's own slash commands; None when it has to be sent as a prompt."""
        if self.client.dialect != "kiro":
            return None
        self.recorder.event("command.executed", {"command": text})
        answer = self.client.execute_command(self.session.session_id, text)
        output = answer.get("output")
        return output if isinstance(output, str) else "done"

    def set(self, name: SettingName, value: str) -> Setting:
        """Asks for a mode or a model."""
        setting = self.session.set_mode(value) if name == "mode" else self.session.set_model(value)
        deadline = time.monotonic() + CONFIRMED_WITHIN_S
        while setting.accepted and setting.confirmed is None and time.monotonic() < deadline:
            time.sleep(0.02)
        record_setting(self.recorder, name, setting)
        return setting

    def choices(self, name: SettingName) -> tuple[str | None, tuple[str, ...]]:
        """What it is now, and what it could be, as far as the agent said."""
        option = self.session.standing.option_for(name)
        return self.session.standing.now.get(name), option.values if option else ()

    def commands(self) -> Mapping[str, str]:
        """The agent's slash commands with their descriptions."""
        return {command.name: command.description for command in self.session.commands}

    def close(self) -> None:
        """Ends the agent and seals the record."""
        self.client.close()
        redactor = self.recorder.redactor
        self.recorder.seal(self.client.stderr.captured(redactor), self._log.take(redactor))


class TextPartner:
    """An agent that only prints text."""

    def __init__(self, name: str, recorder: SessionRecorder, agent: TextAgent, watcher: TurnWatcher) -> None:
        self.name = name
        self.recorder = recorder
        self.session_id: str | None = None
        self.takes_images = False
        self.alive = True
        self._agent = agent
        self._watcher = watcher

    def ask(self, blocks: Blocks, timeout_s: float, poll: Callable[[], str | None]) -> Ending:
        """One line in, text out until the next prompt."""
        text = "\n".join(str(block.get("text", "")) for block in blocks)
        self.recorder.event("prompt.sent", {"text": text})
        turn = self._agent.ask(text, timeout_s, poll=poll)
        self.alive = turn.ended_by == "prompt"
        payload = {"answer": turn.text, "ended_by": turn.ended_by, "trust_questions_denied": turn.denied}
        self.recorder.event("turn.ended", payload, source="hooks")
        note = "" if turn.ended_by == "prompt" else f"ended by {turn.ended_by}"
        if turn.denied:
            note = f"{note}; {turn.denied} tool requests were refused".lstrip("; ")
        self._watcher.chunk(turn.text)
        return Ending(turn.text, note, self.alive)

    def command(self, text: str) -> str | None:
        """Text agents take commands as text."""
        return None

    def set(self, name: SettingName, value: str) -> Setting:
        """There is nothing to ask."""
        raise AgentFailure("not_advertised", f"an agent in text mode has no {name} to set")

    def choices(self, name: SettingName) -> tuple[str | None, tuple[str, ...]]:
        """Nothing is known."""
        return None, ()

    def commands(self) -> Mapping[str, str]:
        """Nothing is known."""
        return {}

    def close(self) -> None:
        """Ends the agent and seals the record."""
        self._agent.close()
        self.recorder.seal(self._agent.stderr.captured(self.recorder.redactor))


def _described(block: dict[str, object]) -> dict[str, object]:
    """A block for the record: inline image data stands there by size, the bytes are an artifact of their own."""
    data = block.get("data")
    return {**block, "data": f"{len(data)} base64 characters"} if isinstance(data, str) else dict(block)
