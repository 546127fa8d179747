"""A worker's receipt to whether its signature holds: the one rule that taking a trial in and verifying a run share."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from labaudit.attest.keys import PublicKey
from labaudit.core.canonical import canonical_bytes
from labaudit.errors import LabauditError


def signature_problem(receipt: Mapping[str, Any]) -> str | None:
    """Why the signature of a receipt_v1 document does not hold; None when it does."""
    body = {name: value for name, value in receipt.items() if name != "signature"}
    pem = receipt.get("public_key")
    if not isinstance(pem, str):
        return "the receipt carries no public key"
    try:
        key = _key(pem)
        signature = base64.b64decode(receipt["signature"]["value"], validate=True)
    except (LabauditError, binascii.Error):
        return "the receipt's key or signature cannot be read"
    if key.keyid != receipt.get("key_id"):
        return "the receipt's key is not the one it names"
    if not key.verifies(signature, canonical_bytes(body)):
        return "the receipt's signature does not hold"
    return None


# A worker signs for many trials with one key.
@lru_cache(maxsize=256)
def _key(pem: str) -> PublicKey:
    return PublicKey.from_pem(pem.encode("ascii", "replace"))
