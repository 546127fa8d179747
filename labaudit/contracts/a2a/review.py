"""Observed packets to answers for the six closing questions of K1-A, each computed and none asserted.

An answer is `yes`, `no`, or `no evidence` when no packet at hand could have shown a "no".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import orjson

from labaudit.contracts.a2a.convert import Event, convert_packet
from labaudit.contracts.a2a.evidence import handoff_of
from labaudit.contracts.a2a.handoff import TASK_REQUESTED
from labaudit.contracts.a2a.matrix import DEFAULTS, Observed
from labaudit.contracts.a2a.meaning import GUARDRAIL, MEANINGS
from labaudit.contracts.a2a.packet import KNOWN_KEYS, Options

# What no text about this evidence may claim, in this spelling or with hyphens and line breaks.
FORBIDDEN_PHRASES = (
    "delegation verified",
    "verified delegation",
    "route resolved",
    "resolved route",
    "handoff verified",
)
_LENIENT = Options(mode="lenient")


class Answer(NamedTuple):
    """One question, its computed answer, how many packets or texts it was computed over, and counterexamples."""

    question: str
    answer: str
    basis: str
    counterexamples: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """The answer as a JSON object."""
        return {**self._asdict(), "counterexamples": list(self.counterexamples)}


class _Question(NamedTuple):
    text: str
    applies: Callable[[Observed], bool]
    holds: Callable[[Observed], bool]
    basis: str


def _events(seen: Observed) -> list[Event]:
    return [event for event in (seen.strict, seen.lenient) if isinstance(event, dict)]


def _is_single_bounded_surface(seen: Observed) -> bool:
    return all(_mentions(event) == 1 and handoff_of(event).keys() == DEFAULTS.keys() for event in _events(seen))


def _mentions(event: Event) -> int:
    """How many objects of the payload are called handoff; attributes are the sender's own and are left out."""
    payload = event["payload"]
    if not isinstance(payload, dict):
        return 0
    inner = (part for key, part in payload.items() if key != "attributes" and isinstance(part, dict))
    return ("handoff" in payload) + sum("handoff" in part for part in inner)


def _promotes_only_by_the_typed_rule(seen: Observed) -> bool:
    return all(
        seen.is_positive and event["event_type"] == TASK_REQUESTED
        for event in _events(seen)
        if handoff_of(event)["visible"]
    )


def _has_untyped_signals(seen: Observed) -> bool:
    return _stripped(seen.packet) != seen.packet


def _ignores_untyped_signals(seen: Observed) -> bool:
    bare = convert_packet(orjson.dumps(_stripped(seen.packet)), _LENIENT)
    return isinstance(seen.lenient, dict) and handoff_of(bare) == handoff_of(seen.lenient)


def _stripped(packet: dict[str, object]) -> dict[str, object]:
    """The packet without attributes, unmapped keys, artifact and the agent's role."""
    kept = {key: value for key, value in packet.items() if key in KNOWN_KEYS - {"attributes", "artifact"}}
    agent = kept.get("agent")
    if isinstance(agent, dict):
        kept["agent"] = {key: value for key, value in agent.items() if key != "role"}
    return kept


def _lacks_task_id(seen: Observed) -> bool:
    kind = seen.packet.get("event_type")
    return kind in ("task.requested", "task.updated") and not seen.has_task_id


def _shows_no_task_reference(seen: Observed) -> bool:
    return all(handoff_of(event)["task_ref_visible"] is False for event in _events(seen))


def _is_update(seen: Observed) -> bool:
    return seen.packet.get("event_type") == "task.updated"


QUESTIONS: tuple[_Question, ...] = (
    _Question(
        "Is handoff a single bounded top-level surface?",
        lambda seen: True,
        _is_single_bounded_surface,
        "packets that gave an event",
    ),
    _Question(
        'Does v1 promote only from typed task.requested with task.kind "delegation"?',
        lambda seen: True,
        _promotes_only_by_the_typed_rule,
        "packets that gave an event",
    ),
    _Question(
        "Does v1 keep away from attributes, discovery, unmapped keys and heuristics?",
        _has_untyped_signals,
        _ignores_untyped_signals,
        "packets with such fields, converted again without them",
    ),
    _Question(
        "Is a substituted unknown-task kept from counting as a visible task reference?",
        _lacks_task_id,
        _shows_no_task_reference,
        "task packets without task.id",
    ),
    _Question("Is task.updated kept from promoting in v1?", _is_update, Observed.has_defaults, "task.updated packets"),
)


def review_answers(observed: Sequence[Observed]) -> list[Answer]:
    """The six questions, answered from these packets and from the texts that are shown beside them."""
    answers = []
    for question in QUESTIONS:
        basis = [seen for seen in observed if question.applies(seen)]
        broken = tuple(seen.name for seen in basis if not question.holds(seen))
        answer = "no" if broken else "yes" if basis else "no evidence"
        answers.append(Answer(question.text, answer, f"{len(basis)} {question.basis}", broken))
    answers.append(_wording_answer(observed))
    return answers


def forbidden_phrases_in(text: str) -> list[str]:
    """The phrases in `text` that claim more than visibility, whatever the spacing and letter case."""
    flat = " ".join(text.lower().replace("-", " ").replace("_", " ").split())
    return [phrase for phrase in FORBIDDEN_PHRASES if phrase in flat]


def _wording_answer(observed: Sequence[Observed]) -> Answer:
    texts = [GUARDRAIL, *(row.may_imply for row in MEANINGS), *(row.must_not_imply for row in MEANINGS)]
    for seen in observed:
        for event in _events(seen):
            notes = event["notes"]
            texts += notes if isinstance(notes, list) else []
    broken = tuple(text for text in texts if forbidden_phrases_in(text))
    basis = f"{len(texts)} sentences shown beside the flags"
    return Answer(
        "Do the texts stay at visibility, and away from correctness and trust?",
        "no" if broken else "yes",
        basis,
        broken,
    )
