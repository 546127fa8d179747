"""Packets to the N1-N7 matrix of K1-A: for each case, which packets exercise it and whether the adapter held to it.

What is expected is read from the packet by the freeze's own table, not by the adapter's code, so the two can differ.
A case that no packet exercises is "not exercised": it neither held nor broke.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from labaudit.contracts.a2a.convert import EVENT_TYPES, FALLBACK, Event, convert_packet
from labaudit.contracts.a2a.errors import AdapterError
from labaudit.contracts.a2a.evidence import handoff_of
from labaudit.contracts.a2a.packet import KNOWN_KEYS, Options

DEFAULTS = {"visible": False, "source_kind": "unknown", "task_ref_visible": False, "message_ref_visible": False}
_STRICT = Options()
_LENIENT = Options(mode="lenient")


@dataclass(frozen=True, slots=True)
class Observed:
    """One packet and what both modes made of it."""

    name: str
    packet: dict[str, object]
    strict: Event | AdapterError
    lenient: Event | AdapterError

    @property
    def task(self) -> dict[str, object]:
        """The typed task object, empty when there is none."""
        task = self.packet.get("task")
        return task if isinstance(task, dict) else {}

    @property
    def has_task_id(self) -> bool:
        """True when a task id was sent as text."""
        return isinstance(self.task.get("id"), str)

    @property
    def is_positive(self) -> bool:
        """True when the one positive rule of v1 matches."""
        return self.packet.get("event_type") == "task.requested" and self.task.get("kind") == "delegation"

    def has_defaults(self) -> bool:
        """True when every event that was emitted carries the default handoff."""
        emitted = [event for event in (self.strict, self.lenient) if isinstance(event, dict)]
        return bool(emitted) and all(handoff_of(event) == DEFAULTS for event in emitted)


class Case(NamedTuple):
    """One row of the matrix: when it applies, what must hold, and both as sentences."""

    id: str
    situation: str
    expected: str
    applies: Callable[[Observed], bool]
    holds: Callable[[Observed], bool]


def _artifact_with_task(seen: Observed) -> bool:
    return seen.packet.get("event_type") == "artifact.shared" and seen.has_task_id


def _unknown_type(seen: Observed) -> bool:
    kind = seen.packet.get("event_type")
    return not (isinstance(kind, str) and kind in EVENT_TYPES)


def _falls_back_with_defaults(seen: Observed) -> bool:
    return isinstance(seen.lenient, dict) and seen.lenient["event_type"] == FALLBACK and seen.has_defaults()


def _request_without_task_id(seen: Observed) -> bool:
    return seen.packet.get("event_type") == "task.requested" and not seen.has_task_id


def _strict_refuses(seen: Observed) -> bool:
    return isinstance(seen.strict, AdapterError) and seen.strict.kind == "measurement"


def _delegation_without_task_id(seen: Observed) -> bool:
    return seen.is_positive and not seen.has_task_id


def _partly_visible(seen: Observed) -> bool:
    return isinstance(seen.lenient, dict) and handoff_of(seen.lenient) == {
        "visible": True,
        "source_kind": "typed_payload",
        "task_ref_visible": False,
        "message_ref_visible": _message_was_sent(seen),
    }


def _request_without_delegation(seen: Observed) -> bool:
    return seen.packet.get("event_type") == "task.requested" and not seen.is_positive


def _only_untyped_signals(seen: Observed) -> bool:
    agent = seen.packet.get("agent")
    has_role = isinstance(agent, dict) and "role" in agent
    has_unmapped = bool(seen.packet.keys() - KNOWN_KEYS)
    return not seen.is_positive and (has_role or has_unmapped or "attributes" in seen.packet)


def _is_update(seen: Observed) -> bool:
    return seen.packet.get("event_type") == "task.updated"


def _complete_delegation(seen: Observed) -> bool:
    return seen.is_positive and seen.has_task_id


def _fully_visible(seen: Observed) -> bool:
    wanted = {
        "visible": True,
        "source_kind": "typed_payload",
        "task_ref_visible": True,
        "message_ref_visible": _message_was_sent(seen),
    }
    emitted = [event for event in (seen.strict, seen.lenient) if isinstance(event, dict)]
    return bool(emitted) and all(handoff_of(event) == wanted for event in emitted)


def _message_was_sent(seen: Observed) -> bool:
    message = seen.packet.get("message")
    return isinstance(message, dict) and isinstance(message.get("id"), str)


_ALL_DEFAULTS = "all defaults"
CASES: tuple[Case, ...] = (
    Case("N1", "artifact.shared with task.id", _ALL_DEFAULTS, _artifact_with_task, Observed.has_defaults),
    Case("N2", "lenient fallback of an unknown event type", _ALL_DEFAULTS, _unknown_type, _falls_back_with_defaults),
    Case("N3", "strict task.requested without task.id", "nothing emitted", _request_without_task_id, _strict_refuses),
    Case(
        "N4",
        "lenient delegation without task.id",
        "visible, typed_payload, no task reference",
        _delegation_without_task_id,
        _partly_visible,
    ),
    Case("N5", "task.requested, not a delegation", _ALL_DEFAULTS, _request_without_delegation, Observed.has_defaults),
    Case(
        "N6",
        "role, attributes, discovery or unmapped keys alone",
        _ALL_DEFAULTS,
        _only_untyped_signals,
        Observed.has_defaults,
    ),
    Case("N7", "task.updated", _ALL_DEFAULTS, _is_update, Observed.has_defaults),
    Case(
        "P1",
        "positive control: delegation with task.id",
        "visible, with the references that were sent",
        _complete_delegation,
        _fully_visible,
    ),
)


@dataclass(slots=True)
class CaseResult:
    """How one case fared over all packets."""

    case: Case
    held: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def status(self) -> str:
        """`held`, `broken` or `not exercised`."""
        return "broken" if self.broken else "held" if self.held else "not exercised"

    def as_json(self) -> dict[str, object]:
        """The row as a JSON object."""
        return {
            "id": self.case.id,
            "situation": self.case.situation,
            "expected": self.case.expected,
            "status": self.status,
            "held": self.held,
            "broken": self.broken,
        }


def observe_packet(name: str, data: bytes) -> Observed | AdapterError:
    """A packet under both modes; the lenient error when even lenient mode gives no event."""
    lenient = _convert(data, _LENIENT)
    if isinstance(lenient, AdapterError):
        return lenient
    packet = orjson.loads(data)
    return Observed(name, packet, _convert(data, _STRICT), lenient)


def run_matrix(observed: Iterable[Observed]) -> list[CaseResult]:
    """Every case over every packet."""
    results = [CaseResult(case) for case in CASES]
    for seen in observed:
        for result in results:
            if result.case.applies(seen):
                (result.held if result.case.holds(seen) else result.broken).append(seen.name)
    return results


def _convert(data: bytes, options: Options) -> Event | AdapterError:
    try:
        return convert_packet(data, options)
    except AdapterError as error:
        return error
