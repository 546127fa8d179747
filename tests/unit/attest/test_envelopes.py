"""DSSE and bundles: the protocol's own vector, exact bytes out, and nothing loose in."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from hypothesis import given
from hypothesis import strategies as st

from labaudit.attest import base64_strict, bundles
from labaudit.attest.dsse import Envelope, pae, parse_envelope, seal
from labaudit.attest.keys import PrivateKey
from labaudit.core.canonical import canonical_bytes
from labaudit.errors import BadInput

KEY = PrivateKey.generate()


def test_the_published_vector_of_the_dsse_protocol_agrees() -> None:
    payload_type, payload = "http://example.com/HelloWorld", b"hello world"
    assert pae(payload_type, payload) == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    point = ec.EllipticCurvePublicNumbers(
        46950820868899156662930047687818585632848591499744589407958293238635476079160,
        5640078356564379163099075877009565129882514886557779369047442380624545832820,
        ec.SECP256R1(),
    )
    sig = "A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA=="
    document = {
        "payload": "aGVsbG8gd29ybGQ=",
        "payloadType": payload_type,
        "signatures": [{"keyid": "66301bbf", "sig": sig}],
    }
    envelope = parse_envelope(document, where="vector")
    assert envelope.as_json() == document
    # The vector gives r and s side by side.
    r, s = (int.from_bytes(envelope.signature[part], "big") for part in (slice(32), slice(32, 64)))
    point.public_key().verify(encode_dss_signature(r, s), envelope.signed_bytes, ec.ECDSA(hashes.SHA256()))


@given(st.text(max_size=40), st.binary(max_size=200), st.text(max_size=40), st.binary(max_size=200))
def test_two_different_messages_never_encode_to_the_same_bytes(
    kind1: str, body1: bytes, kind2: str, body2: bytes
) -> None:
    """DSSE: PAE is unambiguous, lengths count bytes."""
    if (kind1, body1) != (kind2, body2):
        assert pae(kind1, body1) != pae(kind2, body2)


@given(st.binary(max_size=300))
def test_a_bundle_renders_back_to_itself(payload: bytes) -> None:
    envelope = seal(payload, KEY, KEY.public.keyid)
    data = bundles.render(envelope, KEY.public.hint, (b"token",))
    parsed = bundles.parse_bundle(data, where="x")
    assert (parsed.envelope, parsed.hint, parsed.timestamps) == (envelope, KEY.public.hint, (b"token",))
    assert bundles.render(parsed.envelope, str(parsed.hint), parsed.timestamps) == data


@given(st.text(alphabet="ABCD+/=-_ \n", max_size=12))
def test_base64_is_taken_only_when_it_re_encodes_to_itself(text: str) -> None:
    try:
        data = base64_strict.decode(text, where="x")
    except BadInput:
        return
    assert base64.b64encode(data).decode() == text


def envelope_json() -> dict[str, object]:
    return Envelope(b"{}", "application/vnd.in-toto+json", "id", b"sig").as_json()


@pytest.mark.parametrize(
    "change",
    [
        {"signatures": []},
        {"signatures": [{"sig": "AA=="}, {"sig": "AA=="}]},
        {"signatures": [{"sig": "AA==", "extra": 1}]},
        {"signatures": [{"keyid": "x"}]},
        {"signatures": [{"keyid": 7, "sig": "AA=="}]},
        {"signatures": {"sig": "AA=="}},
        {"payload": "AAB="},
        {"payload": "not base64"},
        {"payload": 3},
        {"payloadType": None},
        {"extra": 1},
    ],
)
def test_an_envelope_with_anything_loose_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        parse_envelope(envelope_json() | change, where="x")


@pytest.mark.parametrize(
    "change",
    [
        {"mediaType": "application/vnd.dev.sigstore.bundle+json;version=0.1"},
        {"verificationMaterial": {}},
        {"verificationMaterial": {"publicKey": {}, "tlogEntries": []}},
        {"verificationMaterial": {"publicKey": {"hint": "x"}, "tlogEntries": [], "certificate": {}}},
        {
            "verificationMaterial": {
                "publicKey": {"hint": "x"},
                "timestampVerificationData": {"rfc3161Timestamps": [{}]},
            }
        },
        {"verificationMaterial": []},
        {"messageSignature": {}},
        {"dsseEnvelope": []},
    ],
)
def test_a_bundle_with_anything_loose_is_refused(change: dict[str, object]) -> None:
    value = json.loads(bundles.render(seal(b"{}", KEY, "id"), "hint"))
    with pytest.raises(BadInput):
        bundles.parse_bundle(canonical_bytes(value | change), where="x")
