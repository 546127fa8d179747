"""receipt.json: what a remote worker signed about the attempt it executed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from labaudit.records.base import Record
from labaudit.records.fields import ArtifactRef, DigestText, JsonObject, Many, Positive, Text, Timestamp
from labaudit.records.ids import Ids
from labaudit.records.parts import EventsTotals, FileEntry


class WorkerEngine(Record):
    """The engine as the worker saw it."""

    name: Text
    version: str


class ReceiptSignature(Record):
    """A signature over the canonical bytes of the receipt without this key."""

    algorithm: Literal["ecdsa-p256-sha256"] = "ecdsa-p256-sha256"
    value: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9+/]+={0,2}$", max_length=200)]


class Receipt(Record):
    """The worker, its machine, and the digests of what it handed over."""

    schema_version: Literal["receipt_v1"] = "receipt_v1"
    ids: Ids
    attempt: Positive
    resolved_digest: DigestText
    worker_id: Text
    key_id: Text
    public_key: Text | None = None
    engine: WorkerEngine
    kernel: str
    image_digest: DigestText | None
    started_at: Timestamp
    ended_at: Timestamp
    events: EventsTotals | None
    files: Many[FileEntry]
    artifacts: Many[ArtifactRef]
    signature: ReceiptSignature
    ext: JsonObject | None = None
