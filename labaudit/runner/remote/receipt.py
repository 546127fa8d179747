"""What a worker hands over to a signed receipt, and a receipt back to whose word it is."""

from __future__ import annotations

import base64
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labaudit.attest.keys import PrivateKey
from labaudit.attest.receipt_signature import signature_problem
from labaudit.core.canonical import canonical_bytes
from labaudit.errors import Contradiction
from labaudit.records.parts import EventsTotals, FileEntry
from labaudit.records.receipt import Receipt
from labaudit.records.trial_record import TrialRecord

KEY_VARIABLE = "LABAUDIT_WORKER_KEY"
KEY_NAME = "labaudit-worker.key"


def worker_key(base: Path) -> PrivateKey:
    """The worker's own key: the file that LABAUDIT_WORKER_KEY names, else one in its folder, made at first use."""
    given = os.environ.get(KEY_VARIABLE)
    path = Path(given) if given else base / KEY_NAME
    if not given and not path.exists():
        PrivateKey.generate().save(path, path.with_suffix(".pub"), passphrase=None)
    return PrivateKey.load(path, passphrase=None)


def sign_receipt(
    record: TrialRecord,
    files: Sequence[FileEntry],
    artifacts: Sequence[str],
    *,
    key: PrivateKey,
    worker_id: str,
    engine: tuple[str, str],
    image: str | None,
) -> Receipt:
    """The receipt for one attempt; `record` is the worker's own, the coordinator writes another."""
    body: dict[str, Any] = {
        "schema_version": "receipt_v1",
        "ids": record.ids.to_json(),
        "attempt": record.attempt,
        "resolved_digest": record.resolved_digest,
        "worker_id": worker_id,
        "key_id": key.public.keyid,
        "public_key": key.public.pem,
        "engine": {"name": engine[0], "version": engine[1]},
        "kernel": platform.release(),
        "image_digest": image,
        "started_at": record.started_at,
        "ended_at": record.ended_at,
        "events": record.events.to_json() if isinstance(record.events, EventsTotals) else None,
        "files": [entry.to_json() for entry in files],
        "artifacts": sorted(artifacts),
    }
    value = base64.b64encode(key.sign(canonical_bytes(body))).decode("ascii")
    body["signature"] = {"algorithm": "ecdsa-p256-sha256", "value": value}
    return Receipt.from_json(body, where="receipt")


def check_receipt(receipt: Receipt, known_keys: Sequence[str] | None) -> None:
    """Contradiction when the signature does not hold, or is that of a key that this worker did not register with."""
    problem = signature_problem(receipt.to_json())
    if problem is not None:
        raise Contradiction(problem)
    if known_keys is not None and receipt.key_id not in known_keys:
        raise Contradiction(f"the receipt is signed with an unknown key {receipt.key_id}")
