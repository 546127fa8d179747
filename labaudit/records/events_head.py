"""events.head: what seals an event log."""

from __future__ import annotations

from typing import Literal

from labaudit.records.base import Record
from labaudit.records.fields import Count, DigestText, Hex64, Positive, Text


class EventsHead(Record):
    """Length, digest, chain head and tree root of one attempt's events.jsonl."""

    domain: Literal["labaudit/events/v1"] = "labaudit/events/v1"
    run_id: Text
    trial_id: Text
    attempt: Positive
    resolved_digest: DigestText
    count: Count
    size: Count
    sha256: Hex64
    head: Hex64
    tree_root: Hex64
