"""Signatures to RFC 3161 timestamps, and a stored token back to the moment it proves.

A timestamp is optional. One that is stripped only lowers what is known; one that cannot be verified proves nothing.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from labaudit.attest import base64_strict
from labaudit.errors import BadInput, EnvironmentLacks

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.hashes import HashAlgorithm

_MAX_RESPONSE = 64 * 1024
_TIMEOUT_SECONDS = 20


@dataclass(frozen=True)
class TimestampAuthority:
    """A service that stamps signatures, by its URL."""

    url: str

    def stamp(self, signature: bytes) -> bytes:
        """The DER response over a signature's bytes."""
        from rfc3161_client import TimestampRequestBuilder, decode_timestamp_response

        if not self.url.startswith(("http://", "https://")):
            raise BadInput(f"{self.url!r} is no http address of a timestamp authority")
        body = TimestampRequestBuilder().data(signature).nonce(nonce=True).cert_request(cert_request=True).build()
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
            self.url, data=body.as_bytes(), headers={"Content-Type": "application/timestamp-query"}
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310
                data: bytes = answer.read(_MAX_RESPONSE + 1)
            decode_timestamp_response(data)
        except (urllib.error.URLError, OSError, ValueError) as error:
            raise EnvironmentLacks(f"no timestamp was given: {error}", where=self.url) from error
        return data


def stamps(token: bytes, signature: bytes) -> bool:
    """True when a token is an RFC 3161 response over this signature, whoever gave it."""
    from cryptography.hazmat.primitives import hashes
    from rfc3161_client import decode_timestamp_response

    try:
        imprint = decode_timestamp_response(token).tst_info.message_imprint
    except ValueError:
        return False
    known = (hashes.SHA256(), hashes.SHA384(), hashes.SHA512())
    return any(imprint.message == _digest(algorithm, signature) for algorithm in known)


def _digest(algorithm: HashAlgorithm, data: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes

    hasher = hashes.Hash(algorithm)
    hasher.update(data)
    return hasher.finalize()


def proven_time(token: bytes, signature: bytes, trusted_root: Path) -> datetime | None:
    """The moment before which `signature` existed, by an authority of `trusted_root`; None when it proves nothing."""
    from cryptography.x509 import load_der_x509_certificate
    from rfc3161_client import VerifierBuilder, decode_timestamp_response
    from rfc3161_client.errors import VerificationError

    for authority in _authorities(trusted_root):
        try:
            response = decode_timestamp_response(token)
            certificates = [load_der_x509_certificate(item) for item in authority]
            builder = VerifierBuilder().add_root_certificate(certificates[-1])
            if len(certificates) > 1:
                builder = builder.tsa_certificate(certificates[0])
            for middle in certificates[1:-1]:
                builder = builder.add_intermediate_certificate(middle)
            builder.build().verify_message(response, signature)
        except (VerificationError, ValueError, IndexError):
            continue
        moment: datetime = response.tst_info.gen_time
        return moment
    return None


def _authorities(trusted_root: Path) -> list[list[bytes]]:
    """The certificate chains of the timestamp authorities in a Sigstore trusted root, leaf first."""
    try:
        value = json.loads(trusted_root.read_bytes())
        chains = [item["certChain"]["certificates"] for item in value.get("timestampAuthorities", [])]
        return [[base64_strict.decode(cert["rawBytes"], where=str(trusted_root)) for cert in chain] for chain in chains]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"is no Sigstore trusted root: {error}", where=str(trusted_root)) from error
