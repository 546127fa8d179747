"""A keyless bundle to a yes or no, by Sigstore's own verifier; the only module of verify that loads it."""

from __future__ import annotations

import re
from typing import Any

from labaudit.errors import BadInput
from labaudit.verify.request import Anchors
from labaudit.verify.verdict import Finding

_SPACES = re.compile(r"\s+")


def check_keyless(raw: bytes, path: str, anchors: Anchors) -> Finding | None:
    """What is wrong with the bundle, if anything: first the cryptography and the times, then the identity.

    The identity is compared whole. A pattern that is not anchored would let `eviluser@lab.test.example` pass.
    """
    from sigstore.errors import Error as SigstoreError
    from sigstore.models import Bundle, InvalidBundle
    from sigstore.verify import policy

    try:
        bundle = Bundle.from_json(raw)
    except (InvalidBundle, ValueError) as error:
        return Finding("bundle_malformed", path, _short(error))
    verifier = _verifier(anchors)
    try:
        verifier.verify_dsse(bundle, _AnyIdentity())
    except SigstoreError as error:
        return Finding("keyless_invalid", path, _short(error))
    except (ValueError, TypeError, KeyError) as error:
        return Finding("bundle_malformed", path, _short(error))
    try:
        policy.Identity(identity=str(anchors.identity), issuer=anchors.issuer).verify(bundle.signing_certificate)
    except SigstoreError as error:
        return Finding("keyless_identity", path, _short(error))
    return None


class _AnyIdentity:
    """Lets the first pass look at the cryptography alone; the identity is compared right after it."""

    def verify(self, cert: Any) -> None:
        """Accepts every certificate."""


def _verifier(anchors: Anchors):  # type: ignore[no-untyped-def]
    from sigstore.errors import Error as SigstoreError
    from sigstore.models import TrustedRoot
    from sigstore.verify import Verifier

    if anchors.trusted_root is None:
        # Offline: the root that ships with sigstore, never a download.
        return Verifier.production(offline=True)
    try:
        return Verifier(trusted_root=TrustedRoot.from_file(str(anchors.trusted_root)))
    except (SigstoreError, OSError, ValueError, KeyError) as error:
        raise BadInput(f"is no Sigstore trusted root: {_short(error)}", where=str(anchors.trusted_root)) from error


def _short(error: BaseException) -> str:
    return _SPACES.sub(" ", str(error))[:300] or type(error).__name__
