"""The Ed25519 key of a lab's log: signs checkpoints as C2SP signed notes.

Its public half stands inside the signed run attestation, so a reader trusts one key, not two.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from labaudit.attest.keys import MAX_KEY_FILE, load_pem_private, write_private
from labaudit.errors import BadInput
from labaudit.store import atomic

_ED25519 = b"\x01"
_VKEY = re.compile(r"([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+={0,2})")


def key_hash(name: str, raw: bytes) -> bytes:
    """The four bytes by which a signed note names a key."""
    return hashlib.sha256(name.encode() + b"\n" + _ED25519 + raw).digest()[:4]


@dataclass(frozen=True)
class NoteVerifier:
    """A verifier key of signed notes: a name and 32 bytes, written `name+hash+base64`."""

    name: str
    raw: bytes

    @classmethod
    def parse(cls, text: str, *, where: str = "") -> NoteVerifier:
        """The verifier key in `text`, or BadInput."""
        match = _VKEY.fullmatch(text)
        if match is None:
            raise BadInput("is no verifier key of the form name+hash+key", where=where)
        name, short, encoded = match.groups()
        try:
            data = base64.b64decode(encoded, validate=True)
        except binascii.Error as error:
            raise BadInput("the verifier key's base64 is broken", where=where) from error
        if len(data) != 33 or data[:1] != _ED25519 or base64.b64encode(data).decode() != encoded:
            raise BadInput("the verifier key is no Ed25519 key", where=where)
        if key_hash(name, data[1:]).hex() != short:
            raise BadInput("the verifier key's hash does not fit its name and key", where=where)
        return cls(name, data[1:])

    def __str__(self) -> str:
        encoded = base64.b64encode(_ED25519 + self.raw).decode("ascii")
        return f"{self.name}+{self.hash.hex()}+{encoded}"

    @property
    def hash(self) -> bytes:
        """The four bytes that name this key in a signature line."""
        return key_hash(self.name, self.raw)

    def verifies(self, signature: bytes, text: bytes) -> bool:
        """True when `signature` over `text` was made with the private half."""
        try:
            ed25519.Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, text)
        except (InvalidSignature, ValueError):
            return False
        return True


@dataclass(frozen=True)
class LogKey:
    """The private half."""

    key: ed25519.Ed25519PrivateKey

    @classmethod
    def generate(cls) -> LogKey:
        """A fresh key."""
        return cls(ed25519.Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: Path, *, passphrase: bytes | None = None) -> LogKey:
        """The key in a PEM file."""
        loaded = load_pem_private(atomic.read_bytes(path, max_bytes=MAX_KEY_FILE), passphrase, where=str(path))
        if not isinstance(loaded, ed25519.Ed25519PrivateKey):
            raise BadInput("is no Ed25519 private key", where=str(path))
        return cls(loaded)

    def save(self, path: Path, *, passphrase: bytes | None = None) -> None:
        """Writes the key, readable by its owner alone."""
        write_private(path, self.key, passphrase)

    def verifier(self, name: str) -> NoteVerifier:
        """The public half under the name of one log."""
        raw = self.key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return NoteVerifier(name, raw)

    def sign(self, text: bytes) -> bytes:
        """64 bytes; Ed25519 is deterministic."""
        return self.key.sign(text)
