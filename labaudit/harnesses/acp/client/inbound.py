"""What an agent tells and asks, routed on the reading thread: news to its session, permissions to whoever decides.

An agent may ask us for one thing, a permission. File system, terminal, elicitation and sign-in are not offered; asked
for anyway, they are refused and the refusal is on record.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from labaudit.harnesses.acp.client.permissions import Decision, PermissionAsk, read_ask
from labaudit.harnesses.acp.client.session import ACPSession
from labaudit.harnesses.acp.wire import extensions, jsonrpc, updates
from labaudit.harnesses.acp.wire.transcript import Transcript

MAX_EARLY = 256
MAX_PENDING_ASKS = 1000
MAX_NAMES = 200


class Answers(Protocol):
    """The way back to the agent."""

    def respond(self, identifier: jsonrpc.Id, result: object) -> None:
        """Answers."""
        ...

    def refuse(self, identifier: jsonrpc.Id, code: int, message: str) -> None:
        """Refuses."""
        ...


class Inbound:
    """The listening half of a client."""

    def __init__(self, transcript: Transcript, on_permission: Callable[[PermissionAsk], None]) -> None:
        self.sessions: dict[str, ACPSession] = {}
        self.refused: dict[str, int] = {}
        """Methods that the agent asked for and did not get, with how often."""
        self.unknown_session = 0
        self.stray_permissions = 0
        self.listeners: list[Callable[[str, dict[str, object]], None]] = []
        self.answers: Answers | None = None
        self._transcript = transcript
        self._on_permission = on_permission
        self._lock = threading.Lock()
        self._asks: dict[int, PermissionAsk] = {}
        self._ask_ids: dict[int, jsonrpc.Id] = {}
        self._early: list[tuple[str, int, Callable[[ACPSession], None]]] | None = None

    # --- sessions that are about to be known ---

    def expect_session(self) -> None:
        """From now on, news of unknown sessions is held: the agent may speak before its id has reached us."""
        with self._lock:
            self._early = []

    def welcome(self, session: ACPSession | None) -> None:
        """Delivers what was held for this session; the rest was for no session at all."""
        with self._lock:
            early, self._early = self._early or [], None
        for session_id, seq, deliver in early:
            if session is not None and session_id == session.session_id:
                deliver(session)
            else:
                self._unknown(session_id, seq)

    def answer_pending(self, session_id: str, reason: str) -> None:
        """Answers the session's open permission requests with `cancelled`."""
        with self._lock:
            asks = [ask for ask in self._asks.values() if ask.session_id == session_id]
        for ask in asks:
            ask.answer(Decision(None, reason))

    # --- on the reading thread ---

    def take_notification(self, message: jsonrpc.Notification, seq: int) -> None:
        """An agent tells."""
        method, params = message.method, message.params
        for listener in self.listeners:
            listener(method, params)
        if method == "session/update":
            session_id, update = updates.read_update(params)
            self._route(session_id, seq, lambda session: session.take_update(update, seq))
        elif extensions.is_extension(method):
            self._take_extension(method, params, seq)
        elif method == "$/cancel_request":
            self._withdraw(params.get("requestId"))
        else:
            self._transcript.note("unknown_notification", method, seq)

    def take_request(self, message: jsonrpc.Request, seq: int) -> None:
        """An agent asks."""
        if message.method == "session/request_permission":
            self._take_ask(message, seq)
            return
        self._refuse_on_record(message.method, seq)
        if self.answers is None:
            return
        if message.method == "elicitation/create":
            self.answers.respond(message.id, {"action": "decline"})
        else:
            self.answers.refuse(message.id, jsonrpc.METHOD_NOT_FOUND, f"{message.method[:80]} is not offered")

    def _take_extension(self, method: str, params: dict[str, object], seq: int) -> None:
        named, extension = extensions.read_extension(method, params)
        if named is None and len(self.sessions) == 1:
            # Kiro leaves the session out where there is but one.
            named = next(iter(self.sessions))
        self._route(named, seq, lambda session: session.take_extension(extension, seq))
        if isinstance(extension, extensions.McpEvent) and extension.kind == extensions.OAUTH:
            self._refuse_on_record(method, seq)

    def _take_ask(self, message: jsonrpc.Request, seq: int) -> None:
        session_id, tool, options = read_ask(message.params)
        session = self.sessions.get(session_id or "")
        if session is None or not session.in_turn or len(self._asks) >= MAX_PENDING_ASKS:
            self.stray_permissions += 1
            why = "permission_for_unknown_session" if session is None else "permission_outside_a_turn"
            self._transcript.note(why, tool.call_id if tool else "", seq)
            self._respond(message.id, Decision(None, why))
            return

        def send(decision: Decision) -> None:
            with self._lock:
                self._asks.pop(seq, None)
                self._ask_ids.pop(seq, None)
            self._transcript.note("permission_answered", f"{decision.name}: {decision.reason}", seq)
            self._respond(message.id, decision)
            session.tell_permission(ask)

        ask = PermissionAsk(session.session_id, tool, options, seq=seq, send=send)
        with self._lock:
            self._asks[seq] = ask
            self._ask_ids[seq] = message.id
        if tool is not None:
            ask.call = session.take_tool(tool, seq)
        self._on_permission(ask)

    def _respond(self, identifier: jsonrpc.Id, decision: Decision) -> None:
        if self.answers is not None:
            self.answers.respond(identifier, decision.result)

    def _withdraw(self, request_id: object) -> None:
        with self._lock:
            seqs = [seq for seq, known in self._ask_ids.items() if known == request_id]
            found = [self._asks[seq] for seq in seqs if seq in self._asks]
        for ask in found:
            ask.answer(Decision(None, "the agent withdrew its request"))

    def _refuse_on_record(self, method: str, seq: int) -> None:
        name = method[:120] if len(self.refused) < MAX_NAMES or method in self.refused else "others"
        self.refused[name] = self.refused.get(name, 0) + 1
        self._transcript.note("refused", method, seq)

    def _route(self, session_id: str | None, seq: int, deliver: Callable[[ACPSession], None]) -> None:
        session = self.sessions.get(session_id or "")
        if session is not None:
            deliver(session)
            return
        with self._lock:
            if self._early is not None and session_id and len(self._early) < MAX_EARLY:
                self._early.append((session_id, seq, deliver))
                return
        self._unknown(session_id, seq)

    def _unknown(self, session_id: str | None, seq: int) -> None:
        self.unknown_session += 1
        self._transcript.note("unknown_session", (session_id or "no sessionId")[:200], seq)
