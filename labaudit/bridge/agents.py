"""AgentManager: names of agents to live, recorded partners, one process and one record for each chat.

A record belongs to one process: when the process is gone the record is sealed, and the next one names it as its
predecessor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from labaudit.attest.signers import Signer
from labaudit.bridge.agent_log import AgentLog
from labaudit.bridge.partner import AcpPartner, Partner, TextPartner, TurnWatcher
from labaudit.bridge.recording import SessionPlan, SessionRecorder
from labaudit.bridge.watching import record_agent, record_failure, watch
from labaudit.core.digest import Digest
from labaudit.errors import BadInput, LabauditError
from labaudit.harnesses.acp.client.client import ACPClient
from labaudit.harnesses.acp.client.detect import Detection, Protocol, detect
from labaudit.harnesses.acp.client.failures import AgentFailure
from labaudit.harnesses.acp.client.link import ProcessLink
from labaudit.harnesses.acp.client.permissions import PermissionAsk
from labaudit.harnesses.acp.client.text_agent import TextAgent
from labaudit.harnesses.acp.wire.dialect import Dialect
from labaudit.records.session import Session
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder
from labaudit.store.session_folder import SessionFolder


@dataclass(frozen=True)
class AgentSpec:
    """An agent that chats may talk to."""

    name: str
    command: tuple[str, ...]
    cwd: str
    protocol: Protocol = "auto"
    dialect: Dialect = "v1"


@dataclass(frozen=True)
class Opened:
    """A live partner, and whether the session is the one that was asked for."""

    partner: Partner
    reloaded: bool
    note: str = ""


class AgentManager:
    """Starts agents for chats and ends them."""

    def __init__(
        self,
        lab: LabFolder,
        agents: Sequence[AgentSpec],
        *,
        signer: Signer | None,
        secrets: Mapping[str, str] | None = None,
        withheld: Sequence[str] = (),
        start_timeout_s: float = 60.0,
    ) -> None:
        if not agents:
            raise BadInput("no agent was named", hint="--agent kiro='kiro-cli acp'")
        names = [spec.name for spec in agents]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise BadInput(f"two agents are named {twice[:60]!r}", where="--agent", hint="a chat switches by name")
        self.agents = {spec.name: spec for spec in agents}
        self.default = agents[0].name
        self._lab = lab
        self._signer = signer
        self._secrets = dict(secrets or {})
        # Secrets are kept out of every record; of the agents' environment only what is the bridge's own, since an agent
        # may well need the key that it must not print.
        self._withheld = tuple(withheld)
        self._timeout_s = start_timeout_s
        self._lock = threading.Lock()
        self._detected: dict[str, Detection] = {}

    def spec(self, name: str) -> AgentSpec:
        """The agent of this name, or BadInput."""
        try:
            return self.agents[name]
        except KeyError:
            known = ", ".join(self.agents)
            raise BadInput(f"there is no agent {name[:60]!r}", hint=f"known: {known}") from None

    def open(
        self,
        chat: str,
        name: str,
        session_id: str | None,
        watcher: TurnWatcher,
        on_permission: Callable[[PermissionAsk], None],
    ) -> Opened:
        """A started agent with the chat's session, reloaded if it can be, new if not. AgentFailure when it fails."""
        spec = self.spec(name)
        found = self._detect(spec)
        plan = SessionPlan(
            kind="chat",
            command=found.command,
            protocol=found.protocol,
            dialect=spec.dialect,
            permissions="ask",
            secrets=self._secrets,
            chat=chat,
            previous=self._previous(chat),
        )
        recorder = SessionRecorder(self._lab, plan, signer=self._signer)
        if found.protocol == "text":
            return self._open_text(spec, found, recorder, watcher)
        return self._open_acp(spec, found, recorder, session_id, watcher, on_permission)

    def _open_acp(
        self,
        spec: AgentSpec,
        found: Detection,
        recorder: SessionRecorder,
        session_id: str | None,
        watcher: TurnWatcher,
        on_permission: Callable[[PermissionAsk], None],
    ) -> Opened:
        log = AgentLog(spec.dialect)
        client = ACPClient(
            spec.cwd,
            found.command,
            dialect=spec.dialect,
            link=lambda: ProcessLink(found.command, cwd=spec.cwd, env=log.environment, withheld=self._withheld),
            transcript=recorder.transcript,
            on_permission=on_permission,
            request_timeout_s=self._timeout_s,
        )
        try:
            client.start()
            client.initialize()
            record_agent(recorder, client)
            reloaded, note = False, ""
            if session_id is not None:
                reloaded, note = _reload(client, recorder, session_id, spec.cwd)
            if not reloaded or session_id is None:
                session_id = client.create_session(spec.cwd)
                recorder.event("acp.session_created", {"acp_session_id": session_id})
            session = client.session(session_id)
            watch(recorder, session)
            return Opened(AcpPartner(spec.name, recorder, client, session, watcher, log), reloaded, note)
        except BaseException as error:
            if isinstance(error, AgentFailure):
                record_failure(recorder, error)
            client.close(0.5)
            recorder.seal(client.stderr.captured(recorder.redactor), log.take(recorder.redactor))
            raise

    def _open_text(
        self, spec: AgentSpec, found: Detection, recorder: SessionRecorder, watcher: TurnWatcher
    ) -> Opened:
        link = ProcessLink(found.command, cwd=spec.cwd, withheld=self._withheld)
        try:
            agent = TextAgent(link, transcript=recorder.transcript)
        except AgentFailure as failure:
            record_failure(recorder, failure)
            recorder.seal()
            raise
        agent.wait_ready(5.0)
        note = "this agent prints text only: no tool calls, no permissions, no reload"
        return Opened(TextPartner(spec.name, recorder, agent, watcher), False, note)

    def _detect(self, spec: AgentSpec) -> Detection:
        """Once per agent: an agent's protocol does not change while the bridge runs."""
        with self._lock:
            if spec.name not in self._detected:
                self._detected[spec.name] = detect(
                    spec.command,
                    spec.protocol,
                    cwd=spec.cwd,
                    dialect=spec.dialect,
                    timeout_s=self._timeout_s,
                    withheld=self._withheld,
                )
            return self._detected[spec.name]

    def _previous(self, chat: str) -> SessionFolder | None:
        """The chat's newest record, whose id sorts last because it starts with its time."""
        digest = Digest.of(chat.encode())
        folder = self._lab.sessions
        for path in sorted(folder.iterdir(), reverse=True) if folder.is_dir() else ():
            found = SessionFolder(path)
            try:
                head = Session.from_bytes(atomic.read_bytes(found.session, max_bytes=1 << 20))
            except LabauditError:
                continue
            if head.chat_digest == digest:
                return found
        return None


def _reload(client: ACPClient, recorder: SessionRecorder, session_id: str, cwd: str) -> tuple[bool, str]:
    try:
        client.load_session(session_id, cwd)
    except AgentFailure as failure:
        if failure.kind not in ("not_advertised", "rpc_error", "timeout", "bad_answer"):
            raise
        recorder.event("acp.session_not_loaded", {"acp_session_id": session_id, "reason": failure.what})
        return False, f"the earlier session could not be reloaded ({failure.what}); this is a new one"
    replayed = client.session(session_id).replayed
    recorder.event("acp.session_loaded", {"acp_session_id": session_id, "replayed_updates": replayed})
    return True, ""
