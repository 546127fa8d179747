"""One prompt to one ended turn, whatever the agent does: it answers, fails, or is cancelled and then left behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from labaudit.harnesses.acp.client.failures import AgentFailure
from labaudit.harnesses.acp.client.session import ACPSession
from labaudit.harnesses.acp.client.turn import TurnResult

TIMEOUT = "timeout"
_POLL_S = 0.05


@dataclass(frozen=True)
class Driven:
    """A turn's result, and why we ended it if it was us."""

    result: TurnResult
    stopped: str | None = None
    cancel_ignored: bool = False


def drive_turn(
    session: ACPSession,
    blocks: Sequence[Mapping[str, object]],
    *,
    deadline: float,
    poll: Callable[[], str | None] = lambda: None,
    grace_s: float = 2.0,
) -> Driven:
    """Sends the prompt and waits until `deadline` (monotonic) or until `poll` gives a reason to stop."""
    session.client.send_prompt(session.session_id, blocks)
    while True:
        result = session.wait_turn(max(0.0, min(_POLL_S, deadline - time.monotonic())))
        if result is not None:
            return Driven(result)
        reason = poll() or (TIMEOUT if time.monotonic() >= deadline else None)
        if reason is not None:
            return _cancel(session, reason, grace_s)


def _cancel(session: ACPSession, reason: str, grace_s: float) -> Driven:
    session.cancel()
    result = session.wait_turn(grace_s)
    if result is not None:
        return Driven(result, reason)
    session.client.note("cancel_ignored", f"no end of the turn within {grace_s:g} s of session/cancel")
    what = f"the turn was cancelled ({reason}) and the agent did not end it within {grace_s:g} s"
    abandoned = session.abandon_turn(AgentFailure("timeout", what))
    return Driven(abandoned, reason, cancel_ignored=abandoned.failure is not None)
