"""A finished conversation to `trial_output.json` and `harness_manifest.json`, both in the bridge's words."""

from __future__ import annotations

from collections.abc import Mapping

from labaudit.core.clock import Clock, rfc3339
from labaudit.harnesses.acp.client.client import ACPClient
from labaudit.harnesses.acp.trial.conversation import Finished
from labaudit.harnesses.acp.trial.hook_stream import ORIGIN, STEP_SEMANTICS
from labaudit.harnesses.acp.trial.plan import ConversationPlan
from labaudit.harnesses.acp.wire.text import fit
from labaudit.records.resolved_runtime import ResolvedHarness

MAX_NAMES = 100


def manifest_document(harness: ResolvedHarness, clock: Clock) -> dict[str, object]:
    """What the bridge promises: hook events of turns and tool calls, no more than `cli_events`."""
    document: dict[str, object] = {
        "schema_version": "harness_manifest_v1",
        "created_at": rfc3339(clock.now()),
        "integration_level": "cli_events",
        "harness": {"name": "acp:" + harness.command[0], "entry_command": list(harness.command)},
        "step": {"semantics": STEP_SEMANTICS},
        "hooks": {
            "schema_version": "hook_events_v1",
            "events_path": "/out/harness_events.jsonl",
            "header_event_emitted": True,
        },
        "tracing": {"mode": "none"},
        "ext": {"origin": ORIGIN},
    }
    plane = harness.control_plane
    document["control_plane"] = plane.to_json()
    if harness.exec_digest is not None:
        document["harness"]["exec_digest"] = harness.exec_digest  # type: ignore[index]
    return document


def trial_output(
    ids: Mapping[str, object], finished: Finished, plan: ConversationPlan, client: ACPClient
) -> dict[str, object]:
    """Outcome, answer and counts. `success`: every turn ended by itself; evaluators say whether it was right."""
    outcome = outcome_of(finished)
    document: dict[str, object] = {
        "schema_version": "trial_output_v1",
        "ids": dict(ids),
        "outcome": outcome,
        "answer": finished.turns[-1].result.text if finished.turns else None,
        "metrics": _metrics(finished),
        "ext": {"origin": ORIGIN, "acp": _evidence(finished, plan, client)},
    }
    if outcome == "error":
        document["error"] = _error(finished)
    return document


def outcome_of(finished: Finished) -> str:
    """`error` when the agent failed or time ran out, `failure` when it gave up or was stopped, else `success`."""
    if finished.failure is not None or finished.timed_out or not finished.turns:
        return "error"
    if finished.stopped is not None:
        return "failure"
    ended = all(driven.result.stop_reason == "end_turn" for driven in finished.turns)
    return "success" if ended else "failure"


def _error(finished: Finished) -> dict[str, object]:
    if finished.timed_out:
        detail = f": {finished.failure.what}" if finished.failure else ""
        return {"error_type": "acp:timeout", "message": fit(f"the trial's time ran out{detail}")}
    if finished.failure is None:
        return {"error_type": "acp:no_turn", "message": "no prompt was sent"}
    return {"error_type": f"acp:{finished.failure.kind}", "message": fit(finished.failure.what)}


def _metrics(finished: Finished) -> dict[str, object]:
    metrics: dict[str, object] = {
        "acp_prompt_turns": len(finished.turns),
        "acp_tool_calls": sum(driven.result.tool_calls for driven in finished.turns),
        "acp_updates": sum(driven.result.updates for driven in finished.turns),
        "acp_permission_requests": sum(finished.permission_counts.values()),
    }
    if finished.turns and finished.turns[-1].result.stop_reason:
        metrics["acp_stop_reason"] = finished.turns[-1].result.stop_reason
    cost = finished.session.cost if finished.session else None
    if cost is not None and cost.cost is not None and cost.currency.upper() == "USD":
        metrics["cost_usd"] = cost.cost
    return metrics


def _evidence(finished: Finished, plan: ConversationPlan, client: ACPClient) -> dict[str, object]:
    session, transcript, inbound = finished.session, client.transcript, client.inbound
    evidence: dict[str, object] = {
        "agent": {"name": finished.agent_name, "version": finished.agent_version},
        "dialect": plan.dialect,
        "policy": plan.policy.name,
        "permissions": {"counts": dict(finished.permission_counts), "first": finished.permissions},
        "refused_methods": dict(list(inbound.refused.items())[:MAX_NAMES]),
        "defects": client.defects,
        "updates_for_unknown_sessions": inbound.unknown_session,
        "stray_permission_requests": inbound.stray_permissions,
        "transcript": {**transcript.counts, "full": transcript.full},
        "turn_count": None,
    }
    if finished.stopped is not None:
        evidence["stopped"] = finished.stopped
    if session is not None:
        evidence["session_id"] = fit(session.session_id, 200)
        evidence["updates_outside_turns"] = session.late_updates
        evidence["settings"] = {name: setting.as_json() for name, setting in session.standing.asked.items()}
        evidence["turns"] = [
            {
                "stop_reason": driven.result.stop_reason,
                "updates": driven.result.updates,
                "tool_calls": driven.result.tool_calls,
                "turn_end_noted": driven.result.turn_end_noted,
                "text_cut": driven.result.text_cut,
                "cancel_ignored": driven.cancel_ignored,
            }
            for driven in finished.turns
        ]
        if session.terminated is not None:
            evidence["terminated"] = session.terminated
    return evidence
