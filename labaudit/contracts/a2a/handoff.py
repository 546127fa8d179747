"""K1-A v1, frozen: a mapped event type and the typed task fields to the `handoff` object.

One rule is positive: `task.requested` with `task.kind == "delegation"`. Nothing else may reach this function, so
attributes, discovery, unmapped keys, roles and artifacts cannot promote a packet.
"""

from __future__ import annotations

TASK_REQUESTED = "assay.adapter.a2a.task.requested"
DELEGATION = "delegation"


def default_handoff() -> dict[str, object]:
    """What every event carries unless the positive rule matched."""
    return {"visible": False, "source_kind": "unknown", "task_ref_visible": False, "message_ref_visible": False}


def observe_handoff(
    event_type: str, task_kind: object, *, task_id_was_sent: bool, message_id_was_sent: bool
) -> dict[str, object]:
    """Whether a handoff surface was visible, and which references were sent with it.

    K1-A 4.3: a substituted id is no visible reference, so presence is noted before substitution. A literal
    "unknown-task" that was sent is an id like any other.
    """
    if event_type != TASK_REQUESTED or task_kind != DELEGATION:
        return default_handoff()
    return {
        "visible": True,
        "source_kind": "typed_payload",
        "task_ref_visible": task_id_was_sent,
        "message_ref_visible": message_id_was_sent,
    }
