"""A plan and an agent to a finished conversation: every turn a step, every ending labelled."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from labaudit.harnesses.acp.client.client import ACPClient, agent_info
from labaudit.harnesses.acp.client.driving import TIMEOUT, Driven, drive_turn
from labaudit.harnesses.acp.client.failures import AgentFailure
from labaudit.harnesses.acp.client.permissions import PermissionAsk
from labaudit.harnesses.acp.client.session import ACPSession
from labaudit.harnesses.acp.client.turn import ToolCall
from labaudit.harnesses.acp.trial.hook_stream import HookStream
from labaudit.harnesses.acp.trial.plan import ConversationPlan
from labaudit.harnesses.acp.wire.dialect import text_block

CANCEL_GRACE_S = 2.0
START_TIMEOUT_S = 60.0
MAX_LISTED_PERMISSIONS = 200
BUDGET_STEPS = "budget: max_steps"
BUDGET_TOOLS = "budget: max_tool_calls"
CONTROL_STOP = "the control file says stop"


@dataclass
class Finished:
    """What came of a conversation; `failure` is None when every prompt was answered or we stopped it ourselves."""

    agent_name: str = ""
    agent_version: str = ""
    session: ACPSession | None = None
    turns: list[Driven] = field(default_factory=list)
    failure: AgentFailure | None = None
    stopped: str | None = None
    permissions: list[dict[str, object]] = field(default_factory=list)
    permission_counts: dict[str, int] = field(default_factory=dict)

    @property
    def timed_out(self) -> bool:
        """True when the trial's time ran out."""
        return self.stopped == TIMEOUT


@dataclass(frozen=True)
class Surroundings:
    """What the runner gives a conversation to live in."""

    deadline: float
    """Monotonic."""
    stop_asked: Callable[[], str | None]
    look: Callable[[], object]
    """Lets the runner take in what was just written: at a step's end it may have something to say."""
    write_control: Callable[[str, str | None], str]
    read_control: Callable[[], tuple[str, str, str | None]]


class Conversation:
    """One trial's talk with an agent that `client` can reach."""

    def __init__(self, client: ACPClient, plan: ConversationPlan, hooks: HookStream, around: Surroundings) -> None:
        self._client = client
        self._plan = plan
        self._hooks = hooks
        self._around = around
        self._seen_calls = 0
        self._permission_of: dict[str, str] = {}
        self.finished = Finished()

    def run(self) -> Finished:
        """From the agent's start to its last turn; never raises for what the agent does."""
        finished = self.finished
        try:
            session = self._open()
            for number, prompt in enumerate(self._plan.prompts):
                if self._turn(session, prompt, last=number == len(self._plan.prompts) - 1):
                    break
        except AgentFailure as failure:
            self._fail(failure)
        return finished

    def _open(self) -> ACPSession:
        finished, client, plan = self.finished, self._client, self._plan
        client.start()
        client.request_timeout_s = self._left(START_TIMEOUT_S)
        finished.agent_name, finished.agent_version = agent_info(client.initialize())
        client.request_timeout_s = self._left(START_TIMEOUT_S)
        session = client.session(client.create_session(plan.cwd, plan.mcp_servers))
        finished.session = session
        session.on("tool_call", self._count_call)
        session.on("tool_end", self._tool_end)
        session.on("permission", self._permission)
        client.request_timeout_s = self._left(START_TIMEOUT_S)
        if plan.mode_id is not None:
            session.set_mode(plan.mode_id)
        if plan.model is not None:
            session.set_model(plan.model)
        return session

    def _turn(self, session: ACPSession, prompt: str, *, last: bool) -> bool:
        """Drives one turn; True when it was the last that may be."""
        step = self._hooks.step_start()
        driven = drive_turn(
            session,
            [text_block(prompt)],
            deadline=self._around.deadline,
            poll=self._reason_to_stop,
            grace_s=CANCEL_GRACE_S,
        )
        self.finished.turns.append(driven)
        for call in driven.result.unfinished:
            self._hooks.tool_end(call, unfinished=True, permission=self._permission_of.get(call.call_id))
        failure = driven.result.failure
        if failure is not None:
            self._hooks.error(failure)
            self.finished.failure = failure
        self.finished.stopped = driven.stopped
        over = last or failure is not None or driven.stopped is not None or driven.result.stop_reason != "end_turn"
        return self._end_step(step, over=over)

    def _end_step(self, step: int, *, over: bool) -> bool:
        """Step end, then the control file's word on it."""
        self._hooks.step_end()
        self._around.look()
        spent = self.finished.stopped in (BUDGET_STEPS, BUDGET_TOOLS)
        if not over and self._plan.max_steps is not None and self._hooks.steps >= self._plan.max_steps:
            self.finished.stopped, spent, over = BUDGET_STEPS, True, True
        if spent:
            self._around.write_control("stop", None)
        control = self._around.read_control()
        if control[1] == "stop":
            over = True
            self.finished.stopped = self.finished.stopped or CONTROL_STOP
        # A checkpoint is the runner's act: the bridge only holds the agent between two turns.
        taken = {"stop": "stop", "continue": "stop" if over and spent else "continue"}.get(control[1])
        self._hooks.control_ack(step, control, taken, "acknowledged by the bridge")
        self._around.look()
        return over

    def _reason_to_stop(self) -> str | None:
        limit = self._plan.max_tool_calls
        if limit is not None and self._seen_calls > limit:
            return BUDGET_TOOLS
        # The runner says stop when the last allowed call has ended; the agent may still finish its answer.
        spent = limit is not None and self._seen_calls >= limit
        if not spent and self._around.read_control()[1] == "stop":
            return CONTROL_STOP
        return self._around.stop_asked()

    def _left(self, at_most: float) -> float:
        return max(0.1, min(at_most, self._around.deadline - time.monotonic()))

    def _fail(self, failure: AgentFailure) -> None:
        finished = self.finished
        finished.failure = failure
        reason = self._around.stop_asked()
        if reason is not None:
            finished.stopped = reason
        elif failure.kind == "timeout" and time.monotonic() >= self._around.deadline:
            finished.stopped = TIMEOUT
        self._hooks.error(failure)

    # --- on the reading thread ---

    def _count_call(self, _: ToolCall) -> None:
        self._seen_calls += 1

    def _tool_end(self, call: ToolCall) -> None:
        self._hooks.tool_end(call, permission=self._permission_of.pop(call.call_id, None))

    def _permission(self, ask: PermissionAsk) -> None:
        decision = ask.decision
        if decision is None:
            return
        counts = self.finished.permission_counts
        counts[decision.name] = counts.get(decision.name, 0) + 1
        if ask.call is not None:
            ask.call.refused = not decision.allowed
            self._permission_of[ask.call.call_id] = decision.name
        if len(self.finished.permissions) < MAX_LISTED_PERMISSIONS:
            entry: dict[str, object] = {
                "transcript_seq": ask.seq,
                "kinds": sorted(ask.kinds),
                "decision": decision.name,
                "reason": decision.reason,
            }
            if ask.tool is not None:
                entry["call_id"] = ask.tool.call_id
            self.finished.permissions.append(entry)
