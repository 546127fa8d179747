"""Who signed, and does the caller trust them? A key that the folder brings along is used to compare, never to trust."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from labaudit.attest import bundles
from labaudit.attest.bundles import Bundle
from labaudit.attest.dsse import PAYLOAD_TYPE
from labaudit.attest.keys import PublicKey
from labaudit.core.canonical import is_canonical
from labaudit.verify.checks.paths import layout_key
from labaudit.verify.request import Request
from labaudit.verify.run_view import RunView
from labaudit.verify.verdict import Finding


@dataclass(frozen=True)
class Signature:
    """What is known about one bundle's signature. `trusted` names a signer that the caller trusts."""

    findings: tuple[Finding, ...]
    trusted: str | None = None
    claimed: str | None = None


def signatures_hold(view: RunView) -> Iterator[Finding]:
    """Every bundle is signed by someone the caller trusts, and no loose field was changed."""
    for kind in view.kinds:
        found = view.bundle(kind)
        if isinstance(found, Finding):
            yield found
        else:
            yield from signature_of(view, kind, found).findings


def signature_of(view: RunView, kind: str, bundle: Bundle) -> Signature:
    """What is known about one kind's signature; looked at once."""
    known: dict[str, Signature] = view.memo.setdefault("signatures", {})
    if kind not in known:
        path = f"attestations/{kind}.sigstore.json"
        known[kind] = check_bundle(bundle, path, view.request, layout_key(view))
    return known[kind]


def _signatures(view: RunView) -> Iterator[tuple[str, Signature]]:
    for kind in view.kinds:
        bundle = view.bundle(kind)
        if not isinstance(bundle, Finding):
            yield kind, signature_of(view, kind, bundle)


def trusted_signers(view: RunView) -> dict[str, str]:
    """kind -> signer, for every bundle that a trusted signer made."""
    return {kind: found.trusted for kind, found in _signatures(view) if found.trusted is not None}


def claimed_signers(view: RunView) -> list[str]:
    """Whom the bundles themselves name: shown to the reader, never trusted."""
    return sorted({found.claimed for _, found in _signatures(view) if found.claimed is not None})


def check_bundle(bundle: Bundle, path: str, request: Request, own: PublicKey | None) -> Signature:
    """One bundle against the caller's trust; `own` is the key that the run itself names."""
    anchors = request.anchors
    if bundle.keyless:
        return _keyless(bundle, path, request)
    key = _verifying(bundle, anchors.keys)
    if key is not None:
        return Signature(tuple(_loose_fields(bundle, path, key)), trusted=key.keyid)
    if any(bundle.envelope.keyid == known.keyid or bundle.hint == known.hint for known in anchors.keys):
        return Signature((Finding("signature_invalid", path, "the signature does not verify under the trusted key"),))
    if own is None:
        # Nobody can be named as its signer; where someone is to be believed, that is not enough.
        return Signature(_untrusted(path, "by a key that nothing names", request))
    if not own.verifies(bundle.envelope.signature, bundle.envelope.signed_bytes):
        what = "the signature verifies neither under a trusted key nor under the one that the run names"
        return Signature((Finding("signature_invalid", path, what),))
    loose = tuple(_loose_fields(bundle, path, own))
    return Signature(loose + _untrusted(path, f"by {own.keyid}", request), claimed=own.keyid)


def _untrusted(path: str, whose: str, request: Request) -> tuple[Finding, ...]:
    """Says that a signature is nobody's whom the caller named; when nobody was named, `no_trust_anchor` says it."""
    if not request.anchors.given or request.integrity_only:
        return ()
    return (Finding("signer_not_trusted", path, f"is signed {whose}, which is nobody that you trust"),)


def _verifying(bundle: Bundle, keys: tuple[PublicKey, ...]) -> PublicKey | None:
    # All keys are tried: the keyid is not covered by the signature and must not choose.
    signed = bundle.envelope.signed_bytes
    return next((key for key in keys if key.verifies(bundle.envelope.signature, signed)), None)


def _loose_fields(bundle: Bundle, path: str, key: PublicKey) -> Iterator[Finding]:
    if bundle.envelope.payload_type != PAYLOAD_TYPE:
        yield Finding("payload_type", path, f"the payload type is {bundle.envelope.payload_type[:80]!r}")
    expected = bundles.render(replace(bundle.envelope, keyid=key.keyid), key.hint, bundle.timestamps)
    if bundle.raw != expected:
        yield Finding("bundle_field_differs", path, "keyid, hint, media type or layout differ from what the key gives")
    if bundle.timestamps:
        from labaudit.attest.timestamps import stamps

        if not all(stamps(token, bundle.envelope.signature) for token in bundle.timestamps):
            yield Finding("bundle_field_differs", path, "a timestamp in it is not one of this signature")


def _keyless(bundle: Bundle, path: str, request: Request) -> Signature:
    anchors = request.anchors
    if not is_canonical(bundle.raw):
        return Signature((Finding("bundle_field_differs", path, "is not in canonical form"),))
    if bundle.envelope.payload_type != PAYLOAD_TYPE:
        what = f"the payload type is {bundle.envelope.payload_type[:80]!r}"
        return Signature((Finding("payload_type", path, what),))
    if anchors.identity is None or anchors.issuer is None:
        return Signature(_untrusted(path, "keyless", request), claimed="a certificate")
    # Sigstore is heavy; it is loaded only when a keyless bundle is really there and someone is to be believed.
    from labaudit.verify.keyless import check_keyless

    problem = check_keyless(bundle.raw, path, anchors)
    if problem is not None:
        return Signature((problem,))
    return Signature((), trusted=f"{anchors.identity} ({anchors.issuer})")


def attestations_are_there(view: RunView) -> Iterator[Finding]:
    """Some signature, some trust anchor, and exactly the kinds that the run attestation lists."""
    if not view.signed:
        if not view.request.integrity_only:
            yield Finding("unsigned", "attestations", "the run carries no attestation")
        return
    if "run" not in view.kinds:
        path = "attestations/run.sigstore.json"
        yield Finding("attestation_missing", path, "the folder has attestations, but not the one that names the others")
    if not view.request.anchors.given and not view.request.integrity_only:
        yield Finding("no_trust_anchor", "attestations", "no key and no identity was given to compare the signer with")
    parameters = view.run_parameters
    if parameters is None:
        return
    listed = [kind for kind in parameters["statements"] if isinstance(kind, str)]
    for kind in listed:
        if kind not in view.kinds:
            yield Finding("attestation_missing", f"attestations/{kind}.sigstore.json", "the run attestation lists it")
    for kind in view.kinds:
        if kind not in listed:
            path = f"attestations/{kind}.sigstore.json"
            yield Finding("attestation_unlisted", path, "the run attestation does not list it")
