"""grades.json: five grades with the caps that lowered them, for a trial or for a run."""

from __future__ import annotations

from typing import Generic, Literal, Self, TypeVar

from pydantic import model_validator

from labaudit.records.base import Record
from labaudit.records.fields import (
    Comparability,
    Count,
    EvidenceSource,
    IntegrationLevel,
    Interpretability,
    Isolation,
    Many,
    Provenance,
    Replay,
    Text,
)
from labaudit.records.ids import Ids

Scale = TypeVar("Scale", bound=str)

# From best to worst. `not_observed` stands below each: nothing was seen that could be graded.
SCALES: dict[str, tuple[str, ...]] = {
    "isolation": ("sealed", "bounded", "leaky", "not_observed"),
    "replay": ("strict", "checkpointed", "best_effort", "none", "not_observed"),
    "interpretability": ("step", "turn", "output", "not_observed"),
    "comparability": ("paired", "qualified", "descriptive", "not_comparable", "not_observed"),
    "provenance": ("attested", "signed", "hashed", "none", "not_observed"),
}


class Cap(Record, Generic[Scale]):
    """A rule that holds a grade down, the evidence it read, and the sentence a reader sees."""

    rule: Text
    to: Scale
    evidence: str
    sentence: Text


class Grade(Record, Generic[Scale]):
    """A value on one scale, why it is not higher, and which kinds of evidence it rests on."""

    value: Scale
    caps: Many[Cap[Scale]]
    evidence: Many[EvidenceSource]


class LevelTriple(Record):
    """The integration level that was expected, that the manifest claimed, and that evidence showed."""

    expected: IntegrationLevel | None
    claimed: IntegrationLevel | None
    observed: IntegrationLevel | Literal["not_observed"]


class SourceCoverage(Record):
    """Whether a kind of evidence is there, and for how many of the things it could cover."""

    present: bool
    covered: Count
    total: Count


class Caveat(Record):
    """A limit of what was observed that no grade expresses."""

    id: Text
    sentence: Text


class Grades(Record):
    """All grades of one trial or one run."""

    schema_version: Literal["grades_v1"] = "grades_v1"
    scope: Literal["trial", "run"]
    ids: Ids | None = None
    run_id: Text | None = None
    integration_level: LevelTriple
    evidence_sources: dict[EvidenceSource, SourceCoverage]
    isolation: Grade[Isolation]
    replay: Grade[Replay]
    interpretability: Grade[Interpretability]
    comparability: Grade[Comparability]
    provenance: Grade[Provenance]
    caveats: Many[Caveat]

    @model_validator(mode="after")
    def _scope_says_which_name_it_has(self) -> Self:
        wanted = (self.ids, self.run_id) if self.scope == "trial" else (self.run_id, self.ids)
        if wanted[0] is None or wanted[1] is not None:
            raise ValueError("scope trial has ids and no run_id, scope run has run_id and no ids")
        return self
