"""A permission request to one answer: by policy in a trial, by a person in the chat bridge, and never "always".

An agent names the kind of its own tool call, so a policy by kind is a courtesy between the two; what the sandbox
enforces is what holds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from labaudit.harnesses.acp.client.turn import ToolCall
from labaudit.harnesses.acp.wire.text import list_at, object_at, text_at
from labaudit.harnesses.acp.wire.updates import ToolNews, read_tool

OptionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]
OPTION_KINDS = ("allow_once", "allow_always", "reject_once", "reject_always")
MAX_OPTIONS = 20


@dataclass(frozen=True)
class PermissionOption:
    """One answer that the agent would take."""

    option_id: str
    name: str
    kind: OptionKind


@dataclass(frozen=True)
class Policy:
    """Kinds of tool call that are allowed, each time anew; none is `deny_all`."""

    allow_once: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """As the spec writes it."""
        return "deny_all" if not self.allow_once else "allow_once:" + ",".join(sorted(self.allow_once))


@dataclass(frozen=True)
class Decision:
    """What is answered: an option of the agent's, or None for `cancelled`."""

    option: PermissionOption | None
    reason: str

    @property
    def allowed(self) -> bool:
        """True when the tool call may go on."""
        return self.option is not None and self.option.kind.startswith("allow")

    @property
    def name(self) -> str:
        """The chosen option's kind, or `cancelled`."""
        return self.option.kind if self.option else "cancelled"

    @property
    def result(self) -> dict[str, object]:
        """The JSON-RPC result."""
        if self.option is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": self.option.option_id}}


class PermissionAsk:
    """One pending request; the first answer counts."""

    def __init__(
        self,
        session_id: str,
        tool: ToolNews | None,
        options: tuple[PermissionOption, ...],
        *,
        seq: int,
        send: Callable[[Decision], None],
    ) -> None:
        self.session_id = session_id
        self.tool = tool
        self.options = options
        self.seq = seq
        self._send = send
        self._lock = threading.Lock()
        self.call: ToolCall | None = None
        """The call as the session knows it, with every kind the agent ever gave it."""
        self.decision: Decision | None = None

    @property
    def kinds(self) -> frozenset[str]:
        """All kinds that the agent gave this call, here or before."""
        named = {self.tool.kind} if self.tool and self.tool.kind else set()
        return frozenset(named | (self.call.kinds if self.call else set()))

    def answer(self, decision: Decision) -> bool:
        """Sends the answer; False when there was one already."""
        with self._lock:
            if self.decision is not None:
                return False
            self.decision = decision
        self._send(decision)
        return True

    def option(self, option_id: str) -> PermissionOption | None:
        """The option with this id."""
        return next((option for option in self.options if option.option_id == option_id), None)


def read_ask(
    params: dict[str, object],
) -> tuple[str | None, ToolNews | None, tuple[PermissionOption, ...]]:
    """Session, tool call and options of `session/request_permission`; options of no known kind are left out."""
    session = params.get("sessionId")
    tool = read_tool(object_at(params, "toolCall"), first=False)
    options = []
    for item in list_at(params, "options")[:MAX_OPTIONS]:
        option_id, kind = text_at(item, "optionId", "id", limit=500), text_at(item, "kind", limit=40)
        if option_id and kind in OPTION_KINDS:
            options.append(PermissionOption(option_id, text_at(item, "name", limit=200) or kind, kind))  # type: ignore[arg-type]
    return session if isinstance(session, str) else None, tool, tuple(options)


def decide(policy: Policy, kinds: frozenset[str], options: tuple[PermissionOption, ...]) -> Decision:
    """The policy's answer. `kinds` are all kinds the agent ever gave this call: each must be allowed."""
    allowed = bool(kinds) and kinds <= policy.allow_once
    wanted = ("allow_once",) if allowed else ("reject_once", "reject_always")
    for kind in wanted:
        for option in options:
            if option.kind == kind:
                return Decision(option, f"policy {policy.name}")
    if allowed:
        # Only "always" was on offer: that is a standing grant, which no trial gives.
        return decide(Policy(), kinds, options)
    return Decision(None, f"policy {policy.name}; no option to refuse with")


def by_policy(policy: Policy) -> Callable[[PermissionAsk], None]:
    """A handler that answers at once."""

    def answer(ask: PermissionAsk) -> None:
        ask.answer(decide(policy, ask.kinds, ask.options))

    return answer


def refuse_all(ask: PermissionAsk) -> None:
    """The handler of a client that nobody gave a policy."""
    ask.answer(decide(Policy(), frozenset(), ask.options))
