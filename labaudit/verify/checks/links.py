"""Are layout and links those of this run, signed by the layout key? Nothing in them is ever executed."""

from __future__ import annotations

from collections.abc import Iterator

from labaudit.attest.dsse import PAYLOAD_TYPE, Envelope, parse_envelope
from labaudit.attest.keys import PublicKey
from labaudit.attest.layout import LAYOUT_NAME, STEPS, envelope_bytes, layout_payload, link_name, link_payload
from labaudit.errors import BadInput
from labaudit.verify.bounded_json import parse_bounded
from labaudit.verify.checks.paths import layout_key
from labaudit.verify.run_view import MAX_DOCUMENT, RunView
from labaudit.verify.sources import CannotRead
from labaudit.verify.verdict import Finding


def links_lead_from_plan_to_manifest(view: RunView) -> Iterator[Finding]:
    """Layout and four links are, byte for byte, what the run's digests give."""
    key = layout_key(view)
    if view.manifest is None or key is None:
        return
    path = f"attestations/{LAYOUT_NAME}"
    yield from _signed(view, path, layout_payload(str(view.run_id), key), key, "layout_mismatch")
    digests = {name: entry["sha256"] for name, entry in view.listed.items()}
    digests["manifest.json"] = str(view.manifest_sha256)
    for step in STEPS:
        if all(name in digests for name in (*step.materials, *step.products)):
            path = f"attestations/{link_name(step.name, key)}"
            yield from _signed(view, path, link_payload(step, digests), key, "link_mismatch")


def _signed(view: RunView, path: str, payload: bytes, key: PublicKey, mismatch: str) -> Iterator[Finding]:
    try:
        data = view.source.read(path, MAX_DOCUMENT)
        envelope = parse_envelope(parse_bounded(data, where=path, max_values=1000), where=path)
    except CannotRead as error:
        finding = error.finding
        yield finding._replace(code="link_missing") if finding.code == "file_missing" else finding
        return
    except BadInput as error:
        yield Finding("link_malformed", path, error.what)
        return
    if not key.verifies(envelope.signature, envelope.signed_bytes):
        yield Finding("link_signature", path, "is not signed by the layout key in the run attestation")
    if envelope.payload != payload:
        yield Finding(mismatch, path, "is not what the digests of this run give")
    elif data != envelope_bytes(Envelope(payload, PAYLOAD_TYPE, key.intoto_id, envelope.signature)):
        yield Finding(mismatch, path, "its keyid, payload type or layout differ from what the key gives")
