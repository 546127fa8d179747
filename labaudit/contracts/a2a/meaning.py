"""What each visibility flag may imply and must not imply, as data that pages and attestations show beside it."""

from __future__ import annotations

from typing import NamedTuple

CONTRACT = "k1_a_handoff_v1"
GUARDRAIL = (
    "Every handoff flag says only that something was visible in a packet. None says that a handoff was valid, "
    "authorised, complete, trusted or successful."
)


class Meaning(NamedTuple):
    """One field of an event's payload and the limits of what may be read from it."""

    field: str
    may_imply: str
    must_not_imply: str

    def as_json(self) -> dict[str, str]:
        """The row as a JSON object."""
        return self._asdict()


HANDOFF_MEANINGS: tuple[Meaning, ...] = (
    Meaning(
        "handoff.visible",
        "A bounded handoff surface was observed on a typed task-request packet "
        '(task.requested with task.kind "delegation").',
        "That the delegation succeeded, was allowed or correct, reached the right target, or completed a chain.",
    ),
    Meaning(
        "handoff.source_kind",
        "Which class of source set the flag: typed_payload, or unknown when the rule did not match.",
        "Confidence, correctness, trust, or completeness of the protocol beyond the frozen rule.",
    ),
    Meaning(
        "handoff.task_ref_visible",
        "A typed task.id was sent on a packet whose handoff surface was visible.",
        "That the task's identity was established, that a substituted id is real, or that a route is complete.",
    ),
    Meaning(
        "handoff.message_ref_visible",
        "A typed message.id was sent on a packet whose handoff surface was visible.",
        "That the message is legitimate, who its target is, or that a delegation succeeded.",
    ),
)
DISCOVERY_MEANINGS: tuple[Meaning, ...] = (
    Meaning(
        "discovery.agent_card_visible",
        "The packet's attributes carried a boolean true at the agreed path for an agent card.",
        "That the card exists, is authentic, or was fetched.",
    ),
    Meaning(
        "discovery.agent_card_source_kind",
        "Where the card flag came from: attributes, or unknown.",
        "That the source is trusted.",
    ),
    Meaning(
        "discovery.extended_card_access_visible",
        "The packet's attributes carried a boolean true at the agreed path for extended card access.",
        "That access was granted, used or permitted.",
    ),
    Meaning(
        "discovery.signature_material_visible",
        "Nothing in this version: it is always false.",
        "That no signature exists, or that one was checked.",
    ),
)
MEANINGS = HANDOFF_MEANINGS + DISCOVERY_MEANINGS


def meaning_of(field: str) -> Meaning:
    """The row for a field such as `handoff.visible`; KeyError for a field without one."""
    return next(row for row in MEANINGS if row.field == field)
