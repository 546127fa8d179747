"""trial_record.json: the digest of all that a trial left behind; a leaf of the run tree."""

from __future__ import annotations

from typing import Literal

from labaudit.records.base import Record
from labaudit.records.fields import Count, DigestText, EvidenceOrigin, Many, Outcome, Timestamp
from labaudit.records.ids import Ids
from labaudit.records.parts import EventsTotals, FileEntry


class TrialHarness(Record):
    """Which harness the trial executed."""

    source_digest: DigestText | None
    exec_digest: DigestText | None


class TrialRecord(Record):
    """One scheduled trial, completed or lost, in schedule order; its exact bytes are a leaf."""

    schema_version: Literal["trial_record_v1"] = "trial_record_v1"
    ids: Ids
    index: Count
    attempt: Count
    status: Literal["completed", "lost"]
    outcome: Outcome | None
    resolved_digest: DigestText
    started_at: Timestamp | None
    ended_at: Timestamp | None
    evidence_origin: EvidenceOrigin
    image_digest: DigestText | None
    harness: TrialHarness
    network_evidence_digest: DigestText | None
    events: EventsTotals | None
    files: Many[FileEntry]
    attempts: Count
