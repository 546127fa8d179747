"""A tree head to a C2SP checkpoint (a signed note) and back.

    <origin>
    <size>
    <base64 of the root>
    (empty line)
    — <key name> <base64 of key hash and signature>

The origin of a run's tree carries the run id, so a checkpoint cannot speak for another run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from labaudit.attest import base64_strict
from labaudit.attest.log_key import LogKey, NoteVerifier
from labaudit.errors import BadInput

RUN_ORIGIN = "agent-lab.local/runs/"
PUBLICATION_ORIGIN = "agent-lab.local/publications/"
MAX_CHECKPOINT = 64 * 1024
_SIZE = re.compile(r"0|[1-9][0-9]{0,15}")
_DASH = "\u2014"


@dataclass(frozen=True)
class Checkpoint:
    """A parsed checkpoint; whether its signature holds is asked of a verifier key."""

    origin: str
    size: int
    root: bytes
    key_name: str
    key_hash: bytes
    signature: bytes

    @property
    def text(self) -> bytes:
        """The signed text."""
        return note_text(self.origin, self.size, self.root)

    def signed_by(self, verifier: NoteVerifier) -> bool:
        """True when this is the verifier's key and its signature over this text."""
        return (
            self.key_name == verifier.name
            and self.key_hash == verifier.hash
            and verifier.verifies(self.signature, self.text)
        )

    def render(self) -> bytes:
        """The checkpoint's exact bytes."""
        line = base64_strict.encode(self.key_hash + self.signature)
        return self.text + f"\n{_DASH} {self.key_name} {line}\n".encode()


def note_text(origin: str, size: int, root: bytes) -> bytes:
    """The three lines that are signed."""
    return f"{origin}\n{size}\n{base64_strict.encode(root)}\n".encode()


def sign_checkpoint(origin: str, size: int, root: bytes, key: LogKey) -> Checkpoint:
    """A checkpoint under the log key, whose name is the origin."""
    verifier = key.verifier(origin)
    return Checkpoint(origin, size, root, origin, verifier.hash, key.sign(note_text(origin, size, root)))


def parse_checkpoint(data: bytes, *, where: str) -> Checkpoint:
    """The checkpoint in `data`; one signature, no extension lines, and it must render back to the same bytes."""
    if len(data) > MAX_CHECKPOINT:
        raise BadInput(f"is larger than {MAX_CHECKPOINT} bytes", where=where)
    try:
        lines = data.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise BadInput("is not UTF-8", where=where) from error
    if len(lines) != 6 or lines[3] or lines[5]:
        raise BadInput("is no checkpoint of three lines and one signature", where=where)
    origin, size, root = lines[:3]
    if not origin or not _SIZE.fullmatch(size):
        raise BadInput("has no origin or no decimal tree size", where=where)
    root_hash = base64_strict.decode(root, where=f"{where} root")
    parts = lines[4].split(" ")
    if len(parts) != 3 or parts[0] != _DASH:
        raise BadInput("has no signature line", where=where)
    signature = base64_strict.decode(parts[2], where=f"{where} signature")
    if len(root_hash) != 32 or len(signature) != 68:
        raise BadInput("has a root or an Ed25519 signature of the wrong length", where=where)
    found = Checkpoint(origin, int(size), root_hash, parts[1], signature[:4], signature[4:])
    if found.render() != data:
        raise BadInput("does not render back to itself", where=where)
    return found
