"""Caps on one scale to a grade: the lowest cap wins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from labaudit.records.fields import EvidenceSource
from labaudit.records.grades import SCALES, Cap, Grade


@dataclass(frozen=True)
class CapFinding:
    """One rule that holds a grade down."""

    rule: str
    to: str
    evidence: str
    sentence: str


def grade(scale: str, caps: Iterable[CapFinding], evidence: Sequence[EvidenceSource]) -> Grade[str]:
    """The value that the lowest cap leaves, with all caps in rule order; no cap means the top of the scale."""
    order = SCALES[scale]
    found = sorted(caps, key=lambda cap: (cap.rule, cap.evidence, cap.sentence))
    value = max((cap.to for cap in found), key=order.index, default=order[0])
    return Grade[str](
        value=value,
        caps=tuple(Cap[str](rule=cap.rule, to=cap.to, evidence=cap.evidence, sentence=cap.sentence) for cap in found),
        evidence=tuple(evidence),
    )
