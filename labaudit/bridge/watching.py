"""What happens in an ACP session to events of its record: prompts, tool calls, decisions, endings.

Pieces of text stay in the transcript; the record has one event for each thing that was done, asked or decided. What we
sent and decided is `framework_events`; what the agent claims is `hooks`.
"""

from __future__ import annotations

from collections.abc import Sequence

from labaudit.bridge.recording import SessionRecorder
from labaudit.harnesses.acp.client.client import ACPClient, agent_info
from labaudit.harnesses.acp.client.failures import AgentFailure
from labaudit.harnesses.acp.client.permissions import PermissionAsk
from labaudit.harnesses.acp.client.session import ACPSession
from labaudit.harnesses.acp.client.settings import Setting
from labaudit.harnesses.acp.client.turn import ToolCall, TurnResult
from labaudit.harnesses.acp.wire import extensions
from labaudit.harnesses.acp.wire.text import object_at

AGENT = "hooks"


def record_agent(recorder: SessionRecorder, client: ACPClient) -> None:
    """The agent answered `initialize`."""
    name, version = agent_info(client.agent)
    recorder.event(
        "agent.initialized",
        {
            "name": name,
            "version": version,
            "protocol_version": client.agent.get("protocolVersion"),
            "capabilities": object_at(client.agent, "agentCapabilities"),
        },
        source=AGENT,
    )


def watch(recorder: SessionRecorder, session: ACPSession) -> None:
    """From now on the session's doings are events."""

    def tool_end(call: ToolCall) -> None:
        payload = {
            "call_id": call.call_id,
            "title": call.title,
            "kind": call.kind,
            "status": call.status,
            "duration_ms": call.duration_ms,
            "transcript_seq": call.seq,
        }
        recorder.event("tool_call.ended", payload, source=AGENT)

    def permission(ask: PermissionAsk) -> None:
        decision = ask.decision
        payload = {
            "call_id": ask.tool.call_id if ask.tool else None,
            "kinds": sorted(ask.kinds),
            "offered": [option.kind for option in ask.options],
            "decision": decision.name if decision else "none",
            "reason": decision.reason if decision else "",
            "transcript_seq": ask.seq,
        }
        recorder.event("permission.decided", payload)

    def turn_end(result: TurnResult) -> None:
        recorder.event("turn.ended", turn_payload(result), source=AGENT)

    def mcp(event: extensions.McpEvent) -> None:
        payload = {"kind": event.kind, "server": event.server, "tools": list(event.tools), "url": event.url}
        recorder.event("mcp.event", payload, source=AGENT)

    session.on("tool_end", tool_end)
    session.on("permission", permission)
    session.on("turn_end", turn_end)
    session.on("mcp_event", mcp)
    session.on("terminated", lambda end: recorder.event("acp.session_terminated", {"reason": end.reason}, source=AGENT))


def turn_payload(result: TurnResult) -> dict[str, object]:
    """One ended turn."""
    return {
        "stop_reason": result.stop_reason,
        "failure": {"kind": result.failure.kind, "message": result.failure.what} if result.failure else None,
        "answer": result.text,
        "answer_cut": result.text_cut,
        "updates": result.updates,
        "tool_calls": result.tool_calls,
        "unfinished_tool_calls": [call.call_id for call in result.unfinished],
    }


def record_prompt(recorder: SessionRecorder, session_id: str, blocks: Sequence[dict[str, object]]) -> None:
    """What is about to be sent."""
    recorder.event("prompt.sent", {"acp_session_id": session_id, "blocks": list(blocks)})


def record_setting(recorder: SessionRecorder, name: str, setting: Setting) -> None:
    """A mode or model that was asked for, and what the agent made of it."""
    recorder.event("setting.asked", {"name": name, **setting.as_json()})


def record_failure(recorder: SessionRecorder, failure: AgentFailure) -> None:
    """The agent is gone or refused."""
    recorder.event("agent.failed", {"kind": failure.kind, "message": failure.what})
