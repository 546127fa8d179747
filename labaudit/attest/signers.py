"""Statements to Sigstore bundles: with a key of one's own, or keyless through Sigstore's own signer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from labaudit.attest import bundles, dsse
from labaudit.attest.keys import PrivateKey
from labaudit.core.canonical import canonical_bytes
from labaudit.errors import BadInput, EnvironmentLacks

if TYPE_CHECKING:
    from labaudit.attest.timestamps import TimestampAuthority


class Signer(Protocol):
    """Signs statements; `name` is what a reader is told."""

    @property
    def name(self) -> str:
        """The key's fingerprint, or the identity."""
        ...

    def bundle(self, statement: bytes) -> bytes:
        """The exact bytes of a Sigstore bundle around `statement`."""
        ...


@dataclass(frozen=True)
class KeySigner:
    """Signs with a local P-256 key; an optional authority stamps the signature's time."""

    key: PrivateKey
    authority: TimestampAuthority | None = None

    @property
    def name(self) -> str:
        """`SHA256:...`"""
        return self.key.public.keyid

    def bundle(self, statement: bytes) -> bytes:
        """The bundle's bytes; without a timestamp the same statement always gives the same bytes."""
        envelope = dsse.seal(statement, self.key, self.key.public.keyid)
        stamps = (self.authority.stamp(envelope.signature),) if self.authority else ()
        return bundles.render(envelope, self.key.public.hint, stamps)


class KeylessSigner:
    """Signs through Fulcio, a transparency log and a timestamp authority, with an OpenID identity."""

    def __init__(self, *, trust_config: Path | None = None, identity_token: str | None = None) -> None:
        # Sigstore is heavy; only those who sign keyless pay for it.
        from sigstore.models import ClientTrustConfig
        from sigstore.oidc import IdentityError, IdentityToken, detect_credential
        from sigstore.sign import SigningContext

        try:
            if trust_config is not None:
                config = ClientTrustConfig.from_json(trust_config.read_text("utf-8"))
            else:
                config = ClientTrustConfig.production()
            raw = identity_token or detect_credential()
        except (OSError, ValueError) as error:
            raise BadInput(f"the trust configuration cannot be used: {error}", where=str(trust_config or "")) from error
        except IdentityError as error:
            raise EnvironmentLacks(f"no ambient identity: {error}", hint="pass --identity-token") from error
        if not raw:
            raise EnvironmentLacks(
                "no identity to sign with", hint="run in CI with an OIDC token, or pass --identity-token"
            )
        try:
            self._token = IdentityToken(raw)
        except IdentityError as error:
            raise BadInput(f"the identity token cannot be used: {error}") from error
        self._context = SigningContext.from_trust_config(config)

    @property
    def name(self) -> str:
        """The identity in the token."""
        return str(self._token.identity)

    def bundle(self, statement: bytes) -> bytes:
        """The bundle's bytes, in canonical JSON."""
        from sigstore.dsse import Statement

        try:
            with self._context.signer(self._token) as signer:
                made = signer.sign_dsse(Statement(statement))
        except Exception as error:
            # Sigstore's clients raise many unrelated classes here, all of which mean: a service said no.
            raise EnvironmentLacks(
                f"keyless signing failed: {error}", hint="check the services of --trust-config"
            ) from error
        return canonical_bytes(json.loads(made.to_json()))
