"""Bytes to objects named by their hash, with a sidecar that says what they are.

`artifacts/sha256/<hash>` holds the bytes, `artifacts/meta/<hash>.json` content type and redaction. Two writers of the
same bytes agree on the result, and every read is hashed again.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from labaudit.core.canonical import canonical_bytes
from labaudit.core.digest import CHUNK, hex_of_reference, sha256_hex
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput, Contradiction
from labaudit.store import atomic

REFERENCE_PREFIX = "artifact://sha256/"


class ArtifactStore:
    """The content-addressed store of one run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._objects = root / "sha256"
        self._meta = root / "meta"

    def put(
        self,
        data: bytes | BinaryIO,
        content_type: str = "application/octet-stream",
        redaction_meta: Mapping[str, object] | None = None,
        *,
        durable: bool = True,
    ) -> str:
        """Stores bytes or a stream that is already redacted, and returns its `artifact://` reference."""
        digest = self._put_bytes(data, durable) if isinstance(data, bytes) else self._put_stream(data, durable)
        self._put_meta(digest, content_type, redaction_meta, durable)
        return REFERENCE_PREFIX + digest

    def get(self, artifact_ref: str) -> bytes:
        """The bytes behind a reference, hashed again on the way out."""
        path = self.path(artifact_ref)
        data = atomic.read_bytes(path)
        if sha256_hex(data) != path.name:
            raise Contradiction("an artifact's bytes do not match its name", where=str(path))
        return data

    def open(self, artifact_ref: str) -> BinaryIO:
        """A stream over a stored object that raises Contradiction at its end when the hash is wrong."""
        path = self.path(artifact_ref)
        try:
            return io.BufferedReader(_CheckedReader(path), CHUNK)
        except FileNotFoundError as error:
            raise BadInput("there is no such artifact", where=str(path)) from error

    def meta(self, artifact_ref: str) -> dict[str, object]:
        """Content type and redaction of a stored object."""
        path = self._meta / f"{hex_of_reference(artifact_ref)}.json"
        return parse_object(atomic.read_bytes(path), where=str(path))

    def has(self, artifact_ref: str) -> bool:
        """True when the object is here."""
        return self.path(artifact_ref).is_file()

    def path(self, artifact_ref: str) -> Path:
        """Where the object stands."""
        return self._objects / hex_of_reference(artifact_ref)

    def meta_path(self, artifact_ref: str) -> Path:
        """Where its sidecar stands."""
        return self._meta / f"{hex_of_reference(artifact_ref)}.json"

    def references(self) -> Iterator[str]:
        """All stored objects, sorted by hash."""
        if self._objects.is_dir():
            for name in sorted(path.name for path in self._objects.iterdir()):
                if not name.startswith(atomic.TEMPORARY_PREFIX):
                    yield REFERENCE_PREFIX + name

    def remove_unfinished(self) -> None:
        """Clears away what a writer that was stopped between object and sidecar left; nobody has its reference.

        For a store that nobody writes to now.
        """
        objects = {path.name for path in self._objects.iterdir()} if self._objects.is_dir() else set()
        described = {path.name.removesuffix(".json") for path in self._meta.iterdir()} if self._meta.is_dir() else set()
        for name in objects - described:
            (self._objects / name).unlink()
        for name in described - objects:
            (self._meta / f"{name}.json").unlink(missing_ok=True)

    def _put_bytes(self, data: bytes, durable: bool) -> str:
        digest = sha256_hex(data)
        target = self._objects / digest
        if not target.exists():
            atomic.write_bytes(target, data, mode=0o444, durable=durable)
        return digest

    def _put_stream(self, stream: BinaryIO, durable: bool) -> str:
        temporary = self._objects / f"{atomic.TEMPORARY_PREFIX}{uuid4().hex}"
        try:
            self._objects.mkdir(parents=True, exist_ok=True)
            try:
                digest = _copy_hashing(stream, temporary, durable)
                target = self._objects / digest
                if target.exists():
                    temporary.unlink()
                else:
                    temporary.replace(target)
                    if durable:
                        atomic.sync_folder(self._objects)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise atomic.explain(error, self._objects) from error
        return digest

    def _put_meta(self, digest: str, content_type: str, redaction: Mapping[str, object] | None, durable: bool) -> None:
        target = self._meta / f"{digest}.json"
        # First writer wins: a stored object's description does not change under a reader.
        if not target.exists():
            meta = {"content_type": content_type, "redaction": dict(redaction or {"applied": False})}
            atomic.write_first(target, canonical_bytes(meta), durable=durable)


class _CheckedReader(io.RawIOBase):
    """Reads a file and compares its hash with its name at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb", buffering=0)
        self._hasher = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = self._file.readinto(buffer) or 0
        if count:
            self._hasher.update(memoryview(buffer)[:count])
        elif self._hasher.hexdigest() != self._path.name:
            raise Contradiction("an artifact's bytes do not match its name", where=str(self._path))
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def _copy_hashing(stream: BinaryIO, target: Path, durable: bool) -> str:
    hasher = hashlib.sha256()
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
    # Buffered: a raw write may take a part on a disk that is nearly full, and say so only in its result.
    with os.fdopen(descriptor, "wb") as output:
        while chunk := stream.read(CHUNK):
            hasher.update(chunk)
            output.write(chunk)
        output.flush()
        if durable:
            os.fsync(output.fileno())
    return hasher.hexdigest()
