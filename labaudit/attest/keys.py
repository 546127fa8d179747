"""P-256 key pairs: files on disk to keys that sign and verify, and the three names other tools call them by.

A key has one material and three names: the SSH fingerprint (DSSE `keyid`, what people compare), the Sigstore hint
(base64 of the SPKI's SHA-256) and the in-toto id (what the reference in-toto-verify derives from a PEM file).
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from labaudit.errors import BadInput, EnvironmentLacks
from labaudit.store import atomic

MAX_KEY_FILE = 64 * 1024
_SSH_TYPE = b"ecdsa-sha2-nistp256"
_SSH_CURVE = b"nistp256"


@dataclass(frozen=True)
class PublicKey:
    """The public half of a P-256 key."""

    key: ec.EllipticCurvePublicKey

    @classmethod
    def from_pem(cls, data: bytes, *, where: str = "") -> PublicKey:
        """The key in a PEM `PUBLIC KEY` block; anything but P-256 is BadInput."""
        try:
            loaded = serialization.load_pem_public_key(data)
        except (ValueError, UnsupportedAlgorithm, TypeError) as error:
            raise BadInput("holds no PEM public key", where=where, hint="make one: labaudit keys new") from error
        if not isinstance(loaded, ec.EllipticCurvePublicKey) or not isinstance(loaded.curve, ec.SECP256R1):
            raise BadInput("is no P-256 public key", where=where, hint="labaudit signs with ECDSA on P-256 only")
        return cls(loaded)

    @classmethod
    def from_exact_pem(cls, text: str) -> PublicKey | None:
        """The key in PEM text that is the key's own spelling; text around it, or another spelling, is no key."""
        try:
            key = cls.from_pem(text.encode())
        except BadInput:
            return None
        return key if key.pem == text else None

    @classmethod
    def load(cls, path: Path) -> PublicKey:
        """The key in a `.pub` file; a device or a pipe is never waited for, and of two keys none is chosen."""
        if path.exists() and not path.is_file() and not path.is_dir():
            raise BadInput("is no regular file", where=str(path), hint="save the key to a file first")
        data = atomic.read_bytes(path, max_bytes=MAX_KEY_FILE)
        if data.count(b"-----BEGIN") > 1:
            raise BadInput("holds more than one key", where=str(path), hint="give each key in a file of its own")
        return cls.from_pem(data, where=str(path))

    @cached_property
    def spki(self) -> bytes:
        """The key as SubjectPublicKeyInfo, DER."""
        return self.key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)

    @cached_property
    def pem(self) -> str:
        """The key as PEM text, ending in a newline."""
        return self.key.public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        ).decode("ascii")

    @cached_property
    def keyid(self) -> str:
        """`SHA256:<base64 without padding>`, as `ssh-keygen -lf` prints it."""
        point = self.key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        blob = b"".join(len(part).to_bytes(4, "big") + part for part in (_SSH_TYPE, _SSH_CURVE, point))
        return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode("ascii").rstrip("=")

    @cached_property
    def hint(self) -> str:
        """The Sigstore `publicKey.hint`."""
        return base64.b64encode(hashlib.sha256(self.spki).digest()).decode("ascii")

    @cached_property
    def intoto_id(self) -> str:
        """The id that securesystemslib derives: SHA-256 over its own canonical JSON, where newlines stay unescaped."""
        text = '{"keytype":"ecdsa","keyval":{"public":"' + self.pem + '"},"scheme":"ecdsa-sha2-nistp256"}'
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def intoto_json(self) -> dict[str, object]:
        """The key as an in-toto layout lists it."""
        return {
            "keyid": self.intoto_id,
            "keytype": "ecdsa",
            "keyval": {"public": self.pem},
            "scheme": "ecdsa-sha2-nistp256",
        }

    def verifies(self, signature: bytes, data: bytes) -> bool:
        """True when `signature` (DER) over `data` was made with the private half."""
        try:
            self.key.verify(signature, data, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True)
class PrivateKey:
    """A P-256 key that signs deterministically (RFC 6979): the same bytes give the same signature."""

    key: ec.EllipticCurvePrivateKey

    @classmethod
    def generate(cls) -> PrivateKey:
        """A fresh key."""
        return cls(ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def load(cls, path: Path, *, passphrase: bytes | None = None) -> PrivateKey:
        """The key in a PEM file; a wrong or missing passphrase says so."""
        data = atomic.read_bytes(path, max_bytes=MAX_KEY_FILE)
        loaded = load_pem_private(data, passphrase, where=str(path))
        if not isinstance(loaded, ec.EllipticCurvePrivateKey) or not isinstance(loaded.curve, ec.SECP256R1):
            raise BadInput("is no P-256 private key", where=str(path), hint="make one: labaudit keys new")
        return cls(loaded)

    @cached_property
    def public(self) -> PublicKey:
        """The public half."""
        return PublicKey(self.key.public_key())

    def sign(self, data: bytes) -> bytes:
        """A DER signature over SHA-256 of `data`."""
        return self.key.sign(data, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))

    def save(self, private_path: Path, public_path: Path, *, passphrase: bytes | None = None) -> None:
        """Writes both halves, the private one readable by its owner alone; never over an existing key."""
        refuse_existing(private_path)
        write_private(private_path, self.key, passphrase)
        atomic.write_bytes(public_path, self.public.pem.encode("ascii"))


def load_pem_private(data: bytes, passphrase: bytes | None, *, where: str) -> object:
    """Any PEM private key, with errors that tell a wrong passphrase from a wrong file."""
    try:
        return serialization.load_pem_private_key(data, password=passphrase)
    except TypeError as error:
        if passphrase is None:
            hint = "set LABAUDIT_KEY_PASSPHRASE or use --passphrase"
            raise BadInput("the key is locked by a passphrase", where=where, hint=hint) from error
        raise BadInput("the key has no passphrase, but one was given", where=where) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        what = (
            "the passphrase does not fit, or the file is no PEM private key"
            if passphrase
            else "holds no PEM private key"
        )
        raise BadInput(what, where=where, hint="make one: labaudit keys new") from error


def write_private(path: Path, key: PrivateKeyTypes, passphrase: bytes | None) -> None:
    """A private key as PKCS #8 PEM with mode 0600."""
    lock: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase:
        lock = serialization.BestAvailableEncryption(passphrase)
    data = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)
    atomic.write_bytes(path, data, mode=0o600)


def refuse_existing(path: Path) -> None:
    """A key that exists is never written over."""
    if path.exists():
        raise EnvironmentLacks(
            "there is a key already", where=str(path), hint="move it away first, or choose another name"
        )
