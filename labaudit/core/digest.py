"""Bytes and files to SHA-256 digests that are valid at birth."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import BinaryIO

from labaudit.core.canonical import canonical_bytes
from labaudit.errors import BadInput

CHUNK = 1 << 20
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_HEX = re.compile(r"[0-9a-f]{64}")
_REFERENCE = re.compile(r"artifact://sha256/([0-9a-f]{64})")


class Digest(str):
    """`sha256:<64 lowercase hex>`; made by `parse` or `of`, trusted afterwards."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str, *, where: str = "") -> Digest:
        """The digest in `text`, or BadInput."""
        if not _DIGEST.fullmatch(text):
            raise BadInput(
                f"{text[:80]!r} is no digest", where=where, hint="a digest is sha256: and 64 lowercase hex digits"
            )
        return cls(text)

    @classmethod
    def of(cls, data: bytes) -> Digest:
        """The digest of these bytes."""
        return cls("sha256:" + sha256_hex(data))

    @classmethod
    def of_json(cls, value: object) -> Digest:
        """The digest of the canonical JSON of `value`."""
        return cls.of(canonical_bytes(value))

    @classmethod
    def from_hex(cls, text: str) -> Digest:
        """The digest whose bare hex is `text`."""
        return cls.parse("sha256:" + text)

    @property
    def hex(self) -> str:
        """The 64 hex digits without the algorithm's name."""
        return self[7:]

    @property
    def reference(self) -> str:
        """The `artifact://` reference to the object with this digest."""
        return "artifact://sha256/" + self.hex


def sha256_hex(data: bytes) -> str:
    """64 lowercase hex digits."""
    return hashlib.sha256(data).hexdigest()


def is_hex_digest(text: str) -> bool:
    """True for exactly 64 lowercase hex digits."""
    return _HEX.fullmatch(text) is not None


def hex_of_reference(reference: str) -> str:
    """The hash inside an `artifact://sha256/<hash>` reference, or BadInput."""
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise BadInput(f"{reference[:100]!r} is no artifact reference", hint="artifact://sha256/<64 hex digits>")
    return match.group(1)


def hash_stream(stream: BinaryIO) -> tuple[str, int]:
    """Hex digest and length of all that is left in `stream`, in flat memory."""
    hasher = hashlib.sha256()
    size = 0
    buffer = bytearray(CHUNK)
    view = memoryview(buffer)
    while count := stream.readinto(view):  # type: ignore[attr-defined]
        hasher.update(view[:count])
        size += count
    return hasher.hexdigest(), size


def hash_file(path: Path) -> tuple[str, int]:
    """Hex digest and size of a file, in flat memory."""
    with path.open("rb", buffering=0) as stream:
        return hash_stream(stream)
