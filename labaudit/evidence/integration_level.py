"""Evidence to the integration level that it shows, capped by what the manifest claims and never raised by config.

cli_basic < cli_events = otel < sdk_control < sdk_full
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from labaudit.records.fields import IntegrationLevel

RANK: dict[str, int] = {"cli_basic": 0, "cli_events": 1, "otel": 1, "sdk_control": 2, "sdk_full": 3}


@dataclass(frozen=True)
class LevelEvidence:
    """What was seen of one trial, as far as the level depends on it."""

    ran: bool
    """The harness was executed at all."""
    claimed: IntegrationLevel | None
    """The manifest's level; None without a valid manifest."""
    manifest_problem: str = ""
    hooks_valid: bool = False
    hook_events: int = 0
    """Events of a valid stream apart from its header."""
    hooks_problem: str = ""
    steps: int = 0
    acks_verified: bool = False
    """Every step end has an ack whose version and action the runner wrote."""
    control_declared: bool = False
    span_count: int = 0
    boundaries: int = 0
    boundaries_complete: bool = False
    boundaries_problem: str = ""


class DerivedLevel(NamedTuple):
    """The level, the sentence it rests on, and what kept it from being higher."""

    level: IntegrationLevel | Literal["not_observed"]
    why: str
    caps: tuple[str, ...]


class IntegrationLevelResolver:
    """The seed's interface."""

    def derive(self, evidence: LevelEvidence) -> IntegrationLevel | Literal["not_observed"]:
        """The observed level."""
        return self.explain(evidence).level

    def explain(self, evidence: LevelEvidence) -> DerivedLevel:
        """The observed level with its reasons."""
        if not evidence.ran:
            return DerivedLevel("not_observed", "the harness did not run", ())
        if evidence.claimed is None:
            cap = evidence.manifest_problem or "there is no harness manifest"
            return DerivedLevel("cli_basic", "input and output only", (cap,))
        reached: IntegrationLevel = "cli_basic"
        why = "input and output only"
        caps: list[str] = []
        for level, check in _LADDER:
            answer = check(evidence)
            if answer.seen and RANK[level] <= RANK[evidence.claimed] and _is_step_up(level, reached, evidence.claimed):
                reached, why = level, answer.sentence
            elif answer.seen and RANK[level] > RANK[evidence.claimed]:
                caps.append(f"the manifest claims {evidence.claimed} only")
            elif not answer.seen and RANK[level] <= RANK[evidence.claimed] and _was_claimed(level, evidence.claimed):
                caps.append(answer.sentence)
        return DerivedLevel(reached, why, tuple(dict.fromkeys(caps)))


class _Answer(NamedTuple):
    seen: bool
    sentence: str


def hooks_show_what_happened(evidence: LevelEvidence) -> _Answer:
    if evidence.hooks_valid and evidence.hook_events:
        return _Answer(True, f"a valid hook stream with {evidence.hook_events} events")
    return _Answer(False, evidence.hooks_problem or "no hook events were seen")


def spans_were_received(evidence: LevelEvidence) -> _Answer:
    if evidence.span_count:
        return _Answer(True, f"{evidence.span_count} spans")
    return _Answer(False, "no spans were seen")


def control_was_acknowledged_at_every_step(evidence: LevelEvidence) -> _Answer:
    if not hooks_show_what_happened(evidence).seen:
        return _Answer(False, "control needs a valid hook stream")
    if not evidence.control_declared:
        return _Answer(False, "the manifest declares no control plane")
    if not evidence.steps:
        return _Answer(False, "no step was seen, so no control was acknowledged")
    if not evidence.acks_verified:
        return _Answer(False, "acknowledgements could not be held against what the runner wrote")
    return _Answer(True, f"control acknowledged at the end of each of {evidence.steps} steps")


def boundaries_cover_every_causal_event(evidence: LevelEvidence) -> _Answer:
    if not control_was_acknowledged_at_every_step(evidence).seen:
        return _Answer(False, "boundaries count only together with acknowledged control")
    if not evidence.boundaries:
        return _Answer(False, "no causal boundary was recorded")
    if not evidence.boundaries_complete:
        return _Answer(False, evidence.boundaries_problem or "the boundary record is not complete")
    return _Answer(True, f"{evidence.boundaries} recorded causal boundaries cover every causal event")


# In this order: a harness that shows both hooks and spans is called what its manifest calls it.
_LADDER: tuple[tuple[IntegrationLevel, Callable[[LevelEvidence], _Answer]], ...] = (
    ("cli_events", hooks_show_what_happened),
    ("otel", spans_were_received),
    ("sdk_control", control_was_acknowledged_at_every_step),
    ("sdk_full", boundaries_cover_every_causal_event),
)


def _is_step_up(level: IntegrationLevel, reached: IntegrationLevel, claimed: IntegrationLevel) -> bool:
    return RANK[level] > RANK[reached] or (RANK[level] == RANK[reached] and level == claimed)


def _was_claimed(level: IntegrationLevel, claimed: IntegrationLevel) -> bool:
    """Spans are no part of what an SDK harness claims, nor hooks of what `otel` claims."""
    return level == claimed if level == "otel" or claimed == "otel" else True
