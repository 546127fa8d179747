"""A client of one agent process: starts it and asks it; what the agent says goes through `inbound` to its sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from labaudit import __version__
from labaudit.errors import BadInput
from labaudit.harnesses.acp.client.capture import Capture
from labaudit.harnesses.acp.client.connection import Connection, Result
from labaudit.harnesses.acp.client.failures import AgentFailure
from labaudit.harnesses.acp.client.inbound import Inbound
from labaudit.harnesses.acp.client.link import AgentLink, ProcessLink
from labaudit.harnesses.acp.client.permissions import PermissionAsk, refuse_all
from labaudit.harnesses.acp.client.session import ACPSession
from labaudit.harnesses.acp.client.settings import Setting, SettingName
from labaudit.harnesses.acp.wire import dialect as wire
from labaudit.harnesses.acp.wire import extensions, updates
from labaudit.harnesses.acp.wire.text import object_at, text_at
from labaudit.harnesses.acp.wire.transcript import Transcript

KIRO_COMMAND = ("kiro-cli", "acp")


class ACPClient:
    """JSON-RPC with one agent over its standard streams."""

    def __init__(
        self,
        working_directory: str | Path = ".",
        command: Sequence[str] = KIRO_COMMAND,
        *,
        dialect: wire.Dialect = "v1",
        link: Callable[[], AgentLink] | None = None,
        env: Mapping[str, str] | None = None,
        transcript: Transcript | None = None,
        on_permission: Callable[[PermissionAsk], None] = refuse_all,
        request_timeout_s: float = 60.0,
        name: str = "labaudit",
        version: str = __version__,
    ) -> None:
        self.working_directory = str(working_directory)
        self.command = tuple(command)
        self.dialect: wire.Dialect = dialect
        self.transcript = transcript or Transcript(None)
        self.request_timeout_s = request_timeout_s
        self.agent: dict[str, object] = {}
        """The agent's answer to `initialize`."""
        self.inbound = Inbound(self.transcript, on_permission)
        self._name, self._version = name, version
        self._link = link or (lambda: ProcessLink(self.command, cwd=self.working_directory, env=env))
        self._connection: Connection | None = None

    # --- what the seed calls for ---

    def start(self) -> None:
        """Starts the agent process."""
        if self._connection is not None and self._connection.failure is None:
            raise BadInput("the agent runs already", where=self.command[0])
        inbound = self.inbound
        self._connection = inbound.answers = Connection(
            self._link(),
            self.transcript,
            on_request=inbound.take_request,
            on_notification=inbound.take_notification,
        )

    def initialize(self, timeout_s: float | None = None) -> dict[str, object]:
        """Agrees on protocol version 1; the agent's name, version and capabilities come back."""
        params = wire.initialize(self.dialect, self._name, self._version)
        answer = self._ask("initialize", params, timeout_s)
        version = answer.get("protocolVersion")
        if version != wire.PROTOCOL_VERSION or isinstance(version, bool):
            raise AgentFailure(
                "protocol_version",
                f"the agent speaks protocol version {str(version)[:40]}, we speak {wire.PROTOCOL_VERSION}",
                hint="use an agent of ACP v1, or --protocol text",
            )
        self.agent = answer
        return answer

    def create_session(self, cwd: str, mcp_servers: Sequence[Mapping[str, object]] = ()) -> str:
        """A new session's id; `session(id)` is the session itself."""
        made: list[ACPSession] = []

        def settled(future: Result) -> None:
            # On the reading thread: the session is known before the next line is looked at.
            answer = None if future.exception() else future.result()
            session_id = answer.get("sessionId") if isinstance(answer, dict) else None
            if isinstance(session_id, str) and session_id:
                session = self.sessions.get(session_id) or ACPSession(session_id, self)
                session.standing.take_session_answer(answer)
                made.append(session)
            self.inbound.welcome(made[0] if made else None)

        self.inbound.expect_session()
        self._ask("session/new", wire.new_session(cwd, mcp_servers), None, settled)
        if not made:
            raise AgentFailure("bad_answer", "session/new gave no sessionId")
        return made[0].session_id

    def load_session(
        self, session_id: str, cwd: str | None = None, mcp_servers: Sequence[Mapping[str, object]] = ()
    ) -> dict[str, object]:
        """Reopens a session, if the agent can; the history it replays is flagged and counted apart."""
        if not self.can_load_sessions:
            hint = "it did not advertise loadSession"
            raise AgentFailure("not_advertised", "the agent cannot load sessions", hint=hint)
        session = self.sessions.get(session_id) or ACPSession(session_id, self)
        session.replaying = True
        self.note("replay_begins", session_id)

        def settled(_: Result) -> None:
            session.replaying = False
            self.note("replay_ends", f"{session.replayed} updates of {session_id}")

        params = wire.load_session(self.dialect, session_id, cwd or self.working_directory, mcp_servers)
        try:
            answer = self._ask("session/load", params, None, settled)
        except AgentFailure:
            self.sessions.pop(session_id, None)
            raise
        session.standing.take_session_answer(answer)
        return answer

    def send_prompt(self, session_id: str, content: Sequence[Mapping[str, object]]) -> None:
        """Starts a turn. The response to this request ends it; see `ACPSession.wait_turn` and `on_turn_end`."""
        session = self.session(session_id)
        params = wire.prompt(self.dialect, session_id, content)
        session.begin_turn(lambda settled: self._send("session/prompt", params, settled))

    def cancel(self, session_id: str) -> None:
        """Asks the agent to end its turn; permissions it waits for are answered `cancelled`."""
        self._live().notify("session/cancel", wire.cancel(session_id))
        self.answer_pending(session_id, "the turn was cancelled")

    def set_mode(self, session_id: str, mode: str) -> Setting:
        """Asks for a mode: by the agent's option where it has one, else by `session/set_mode`."""
        return self._set("mode", session_id, mode, "session/set_mode", wire.set_mode(self.dialect, session_id, mode))

    def set_model(self, session_id: str, model: str) -> Setting:
        """Asks for a model: by the agent's option where it has one, else by `session/set_model`."""
        params = wire.set_model(self.dialect, session_id, model)
        return self._set("model", session_id, model, "session/set_model", params)

    def execute_command(self, session_id: str, command: str) -> dict[str, object]:
        """Runs one of Kiro's slash commands."""
        return self._ask(extensions.EXECUTE, wire.execute_command(session_id, command))

    def command_options(self, session_id: str, command: str) -> dict[str, object]:
        """How one of Kiro's slash commands could go on."""
        return self._ask(extensions.OPTIONS, wire.execute_command(session_id, command))

    def on_notification(self, callback: Callable[[str, dict[str, object]], None]) -> None:
        """Called with method and params of every notification, on the reading thread."""
        self.inbound.listeners.append(callback)

    def close(self, grace_s: float = 2.0) -> None:
        """Ends the agent and its transcript. Idempotent."""
        if self._connection is not None:
            self._connection.close(grace_s)
        self.transcript.close()

    # --- beyond the seed ---

    def restart(self) -> dict[str, object]:
        """A new process in place of a dead one; sessions must be loaded again."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self.sessions.clear()
        self.start()
        return self.initialize()

    def authenticate(self, method_id: str) -> None:
        """Uses one of the agent's sign-in methods; never done unasked."""
        self._ask("authenticate", {"methodId": method_id})

    @property
    def failure(self) -> AgentFailure | None:
        """Why the agent is gone, or None while it is there."""
        return self._connection.failure if self._connection else AgentFailure("closed", "the agent was not started")

    @property
    def sessions(self) -> dict[str, ACPSession]:
        """Sessions by id."""
        return self.inbound.sessions

    @property
    def stderr(self) -> Capture:
        """What the agent wrote to stderr."""
        return self._connection.stderr if self._connection else Capture()

    @property
    def defects(self) -> dict[str, int]:
        """Lines that were no messages, by defect."""
        return dict(self._connection.defects) if self._connection else {}

    @property
    def can_load_sessions(self) -> bool:
        """Whether the agent advertised `loadSession`."""
        return object_at(self.agent, "agentCapabilities").get("loadSession") is True

    def prompt_capability(self, name: str) -> bool:
        """Whether the agent advertised this kind of prompt content."""
        return object_at(object_at(self.agent, "agentCapabilities"), "promptCapabilities").get(name) is True

    def session(self, session_id: str) -> ACPSession:
        """The session with this id, or BadInput."""
        try:
            return self.sessions[session_id]
        except KeyError:
            raise BadInput(f"there is no session {session_id[:80]!r}", hint="create or load it first") from None

    def attach(self, session: ACPSession) -> None:
        """A session announces itself."""
        self.sessions[session.session_id] = session

    def note(self, kind: str, detail: str = "", about: int | None = None) -> None:
        """A note in the transcript."""
        self.transcript.note(kind, detail, about)

    def look_for_the_end(self) -> None:
        """See Connection."""
        self._live().look_for_the_end()

    def answer_pending(self, session_id: str, reason: str) -> None:
        """Answers the session's open permission requests with `cancelled`."""
        self.inbound.answer_pending(session_id, reason)

    # --- asking ---

    def _live(self) -> Connection:
        if self._connection is None:
            raise AgentFailure("closed", "the agent was not started", hint="call start first")
        return self._connection

    def _send(self, method: str, params: Mapping[str, object], settled: Callable[[Result], None]) -> None:
        self._live().request(method, params, settled)

    def _ask(
        self,
        method: str,
        params: Mapping[str, object],
        timeout_s: float | None = None,
        settled: Callable[[Result], None] | None = None,
    ) -> dict[str, object]:
        connection = self._live()
        future = connection.request(method, params, settled)
        answer: Any = connection.wait(future, timeout_s or self.request_timeout_s, method)
        if answer is None:
            return {}
        if not isinstance(answer, dict):
            raise AgentFailure("bad_answer", f"the answer to {method} is no object")
        return answer

    def _set(self, name: SettingName, session_id: str, value: str, method: str, params: wire.Params) -> Setting:
        standing = self.session(session_id).standing
        setting = standing.asked[name] = Setting(value)
        option = standing.option_for(name)
        try:
            if option is not None and (not option.values or value in option.values):
                setting.via = "session/set_config_option"
                answer = self._ask(setting.via, wire.set_config_option(session_id, option.id, value))
                standing.take_options(updates.OptionsNow(updates.read_options(_options_in(answer))))
            else:
                setting.via = method
                standing.take_session_answer(self._ask(method, params))
            setting.accepted = True
        except AgentFailure as failure:
            if failure.kind not in ("rpc_error", "timeout", "bad_answer"):
                raise
            setting.error = failure.what
        return setting


def _options_in(answer: dict[str, object]) -> list[object]:
    options = answer.get("configOptions")
    return options if isinstance(options, list) else []


def agent_info(agent: Mapping[str, object]) -> tuple[str, str]:
    """Name and version as the agent states them; empty where it does not."""
    info = object_at(dict(agent), "agentInfo")
    return text_at(info, "name", limit=200), text_at(info, "version", limit=100)
