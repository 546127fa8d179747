"""analysis/suspects.json: what else differs between the arms, and what changes together with the effect.

Every entry is an association in the evidence named beside it; a check without enough evidence is listed as such.
"""

from __future__ import annotations

from typing import Literal

from labaudit.records.base import Record
from labaudit.records.fields import Count, EvidenceSource, Many, Number, Text


class Coverage(Record):
    """How many trials or tasks the evidence covers."""

    covered: Count
    total: Count


class Suspect(Record):
    """One check: flagged, not flagged, or without enough evidence."""

    variant: Text
    kind: Literal["confound", "behaviour"]
    id: Text
    status: Literal["flagged", "not_flagged", "insufficient_evidence"]
    sentence: Text
    evidence_source: EvidenceSource
    coverage: Coverage
    statistic: Text | None
    value: Number | None
    p: Number | None
    p_adjusted: Number | None
    method: Text | None


class Suspects(Record):
    """All checks of a run; their p-values are corrected as one family."""

    schema_version: Literal["suspects_v1"] = "suspects_v1"
    correction: Literal["bh"]
    alpha: Number
    note: Text
    evidence_coverage: dict[EvidenceSource, Coverage]
    suspects: Many[Suspect]
