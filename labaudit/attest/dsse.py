"""Payloads to DSSE envelopes and back: what is signed is the pre-authentication encoding, never JSON text.

An envelope here has exactly one signature and exactly the fields of the protocol, so that no byte of it is loose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from labaudit.attest import base64_strict
from labaudit.errors import BadInput

PAYLOAD_TYPE = "application/vnd.in-toto+json"
MAX_PAYLOAD = 64 * 1024 * 1024


class Signs(Protocol):
    """Anything that signs bytes."""

    def sign(self, data: bytes) -> bytes:
        """A signature over `data`."""
        ...


def pae(payload_type: str, payload: bytes) -> bytes:
    """The DSSE v1 pre-authentication encoding."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


@dataclass(frozen=True)
class Envelope:
    """A payload, its type and its one signature."""

    payload: bytes
    payload_type: str
    keyid: str
    signature: bytes

    @property
    def signed_bytes(self) -> bytes:
        """What the signature is over."""
        return pae(self.payload_type, self.payload)

    def as_json(self) -> dict[str, object]:
        """The envelope as DSSE JSON."""
        return {
            "payload": base64_strict.encode(self.payload),
            "payloadType": self.payload_type,
            "signatures": [{"keyid": self.keyid, "sig": base64_strict.encode(self.signature)}],
        }


def seal(payload: bytes, signer: Signs, keyid: str, *, payload_type: str = PAYLOAD_TYPE) -> Envelope:
    """`payload` signed."""
    return Envelope(payload, payload_type, keyid, signer.sign(pae(payload_type, payload)))


def parse_envelope(value: object, *, where: str) -> Envelope:
    """The envelope in a parsed JSON value, or BadInput naming the field."""
    if not isinstance(value, dict) or set(value) != {"payload", "payloadType", "signatures"}:
        raise BadInput("is no DSSE envelope with payload, payloadType and signatures", where=where)
    kind = value["payloadType"]
    if not isinstance(kind, str):
        raise BadInput("payloadType is no text", where=where)
    signatures = value["signatures"]
    if not isinstance(signatures, list) or len(signatures) != 1:
        count = len(signatures) if isinstance(signatures, list) else "no list of"
        raise BadInput(f"has {count} signatures, exactly one is expected", where=where)
    signature = signatures[0]
    if not isinstance(signature, dict) or not set(signature) <= {"keyid", "sig"} or "sig" not in signature:
        raise BadInput("has a signature with fields other than keyid and sig", where=where)
    keyid = signature.get("keyid", "")
    if not isinstance(keyid, str):
        raise BadInput("keyid is no text", where=where)
    payload = base64_strict.decode(value["payload"], where=f"{where} payload")
    if len(payload) > MAX_PAYLOAD:
        raise BadInput(f"the payload is larger than {MAX_PAYLOAD} bytes", where=where)
    return Envelope(payload, kind, keyid, base64_strict.decode(signature["sig"], where=f"{where} sig"))
