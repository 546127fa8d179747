"""Envelopes to Sigstore bundles v0.3 and back: own-key bundles by hint, keyless ones by certificate.

Of an own-key bundle every byte is derived: `render` of its envelope and hint gives the file back, so verify compares.
"""

from __future__ import annotations

from dataclasses import dataclass

from labaudit.attest import base64_strict
from labaudit.attest.dsse import Envelope, parse_envelope
from labaudit.core.canonical import canonical_bytes
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput

MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
MAX_BUNDLE = 96 * 1024 * 1024
MAX_VALUES = 10_000

# cosign's offline key mode asks for a trusted root even where no log or authority is involved.
EMPTY_TRUSTED_ROOT: dict[str, object] = {
    "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
    "tlogs": [],
    "certificateAuthorities": [],
    "ctlogs": [],
    "timestampAuthorities": [],
}


@dataclass(frozen=True)
class Bundle:
    """One parsed bundle; `hint` is None for a keyless one, `timestamps` holds RFC 3161 tokens (DER)."""

    envelope: Envelope
    hint: str | None
    timestamps: tuple[bytes, ...]
    raw: bytes

    @property
    def keyless(self) -> bool:
        """True when a certificate, not a key hint, names the signer."""
        return self.hint is None


def render(envelope: Envelope, hint: str, timestamps: tuple[bytes, ...] = ()) -> bytes:
    """The exact bytes of an own-key bundle."""
    material: dict[str, object] = {"publicKey": {"hint": hint}, "tlogEntries": []}
    if timestamps:
        tokens = [{"signedTimestamp": base64_strict.encode(token)} for token in timestamps]
        material["timestampVerificationData"] = {"rfc3161Timestamps": tokens}
    return canonical_bytes(
        {"mediaType": MEDIA_TYPE, "verificationMaterial": material, "dsseEnvelope": envelope.as_json()}
    )


def parse_bundle(data: bytes, *, where: str) -> Bundle:
    """The bundle in a file's bytes, or BadInput naming what is wrong."""
    # A bundle is a few long texts; thousands of values are none, and would cost memory before anyone notices.
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MAX_VALUES:
        raise BadInput(f"holds more than {MAX_VALUES} values", where=where)
    value = parse_object(data, where=where, max_bytes=MAX_BUNDLE)
    if set(value) != {"mediaType", "verificationMaterial", "dsseEnvelope"}:
        raise BadInput("is no Sigstore bundle with a DSSE envelope", where=where)
    if value["mediaType"] != MEDIA_TYPE:
        raise BadInput(f"has media type {str(value['mediaType'])[:80]!r}, not {MEDIA_TYPE}", where=where)
    material = value["verificationMaterial"]
    if not isinstance(material, dict):
        raise BadInput("verificationMaterial is no object", where=where)
    envelope = parse_envelope(value["dsseEnvelope"], where=where)
    if "publicKey" not in material:
        if "certificate" not in material:
            raise BadInput("names neither a public key nor a certificate", where=where)
        return Bundle(envelope, None, (), data)
    return Bundle(envelope, _hint(material, where), _timestamps(material, where), data)


def _hint(material: dict[str, object], where: str) -> str:
    extra = set(material) - {"publicKey", "tlogEntries", "timestampVerificationData"}
    if extra:
        raise BadInput(f"has unknown verification material: {', '.join(sorted(extra))}", where=where)
    key = material["publicKey"]
    hint = key.get("hint") if isinstance(key, dict) else None
    if not isinstance(hint, str):
        raise BadInput("publicKey has no hint", where=where)
    return hint


def _timestamps(material: dict[str, object], where: str) -> tuple[bytes, ...]:
    data = material.get("timestampVerificationData")
    if data is None:
        return ()
    items = data.get("rfc3161Timestamps") if isinstance(data, dict) else None
    if not isinstance(items, list):
        raise BadInput("timestampVerificationData holds no rfc3161Timestamps", where=where)
    tokens = []
    for item in items:
        token = item.get("signedTimestamp") if isinstance(item, dict) else None
        tokens.append(base64_strict.decode(token, where=f"{where} timestamp"))
    return tuple(tokens)
