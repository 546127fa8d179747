"""A bundle zip to the same bounded bytes that a folder gives, without unpacking it.

Members are read by their place in the file. A member whose bytes were changed gives the changed bytes, so that its
digest says so, as in a folder; that the archive's own checksum is wrong is told besides.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from labaudit.verify.sources import CannotRead, Entry, too_large
from labaudit.verify.verdict import Finding
from labaudit.verify.zip_layout import ArchiveRefused, Member, bound_directory, declared_members, read_members

_CHUNK = 1 << 20
_BUFFER = 1 << 16
_EXEC = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, ValueError)


class ZipSource:
    """A run inside an archive; members stand under one folder named by the run, or at the top."""

    def __init__(self, path: Path) -> None:
        self.root = path
        self.odd: dict[str, Finding] = {}
        try:
            bound_directory(path)
            self._stream = path.open("rb")
            with zipfile.ZipFile(self._stream) as archive:
                if declared_members(path) not in (None, len(archive.infolist())):
                    raise zipfile.BadZipFile("it counts another number of members than its directory lists")
                self._members = read_members(archive, self._stream, path)
        except _BROKEN as error:
            raise ArchiveRefused("archive_malformed", path.name, f"is no readable zip: {error}") from error
        except OSError as error:
            raise ArchiveRefused("unreadable", path.name, f"cannot be read: {error.strerror}") from error
        self._folders = _folders(self._members)

    def entries(self, folder: str) -> list[Entry]:
        """The names in a folder, sorted."""
        return sorted(Entry(name, kind) for name, kind in self._folders.get(folder, {}).items())

    @contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        """A stream over one member."""
        raw = _MemberStream(self._stream.fileno(), self._member(path), path)
        with io.BufferedReader(raw, _BUFFER) as stream:
            yield stream

    def read(self, path: str, limit: int) -> bytes:
        """A small member's bytes."""
        size = self.size(path)
        if size > limit:
            raise CannotRead(too_large(path, size, limit))
        with self.open(path) as stream:
            return stream.read()

    def size(self, path: str) -> int:
        """The size that a member declares; reading it gives exactly so much."""
        return self._member(path).size

    def hash(self, path: str, expected: int | None = None) -> tuple[str, int]:
        """Hex digest and size."""
        member = self._member(path)
        if expected is not None and member.size != expected:
            return "", member.size
        hasher, total, crc = hashlib.sha256(), 0, 0
        with self.open(path) as stream:
            while chunk := stream.read(_CHUNK):
                hasher.update(chunk)
                crc = zlib.crc32(chunk, crc)
                total += len(chunk)
        if crc != member.crc:
            what = "the archive gives another CRC-32 for its bytes"
            self.odd[f"{path} crc"] = Finding("archive_malformed", path, what)
        return hasher.hexdigest(), total

    def unpack(self, folder: Path) -> None:
        """Every member as a plain file below `folder`; their names were found safe when the archive was opened."""
        for path in self._members:
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with self.open(path) as stream, target.open("xb") as copy:
                while chunk := stream.read(_CHUNK):
                    copy.write(chunk)

    def exists(self, path: str) -> bool:
        """True when there is such a member."""
        return path in self._members

    def _member(self, path: str) -> Member:
        member = self._members.get(path)
        if member is None:
            what = "a folder stands there" if path in self._folders else "the file is not in the archive"
            raise CannotRead(Finding("file_missing", path, what))
        if member.kind != "file":
            code = "link_found" if member.kind == "link" else "special_file"
            raise CannotRead(Finding(code, path, "the member is no regular file"))
        if member.mode & _EXEC:
            self.odd[path] = Finding("exec_bit", path, "the file is executable")
        return member


class _MemberStream(io.RawIOBase):
    """The bytes of one member: as many as the directory says, or CannotRead."""

    def __init__(self, descriptor: int, member: Member, path: str) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._path = path
        self._place, self._packed, self._left = member.start, member.packed, member.size
        self._inflate = zlib.decompressobj(-zlib.MAX_WBITS) if member.deflated else None
        if self._inflate is None and member.packed != member.size:
            raise self._broken("it is stored, with two sizes")

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills the buffer as far as there is more."""
        if not self._left:
            return 0
        data = self._next(min(len(buffer), self._left))
        if not data:
            raise self._broken("it ends too early")
        buffer[: len(data)] = data
        self._left -= len(data)
        if not self._left and self._inflate is not None:
            self._ends()
        return len(data)

    def _next(self, most: int) -> bytes:
        if self._inflate is None:
            return self._raw(most)
        try:
            while True:
                packed = self._inflate.unconsumed_tail or self._raw(_BUFFER)
                data = self._inflate.decompress(packed, most)
                if data or not packed:
                    return data
        except zlib.error as error:
            raise self._broken(str(error)) from error

    def _ends(self) -> None:
        """Nothing may follow what was declared: other readers would go on."""
        assert self._inflate is not None
        try:
            more = self._inflate.decompress(self._inflate.unconsumed_tail or self._raw(_BUFFER), 1)
        except zlib.error as error:
            raise self._broken(str(error)) from error
        if more or not self._inflate.eof or self._inflate.unused_data or self._packed:
            raise self._broken("it goes on after its declared size")

    def _raw(self, most: int) -> bytes:
        try:
            data = os.pread(self._descriptor, min(most, self._packed), self._place)
        except OSError as error:
            what = f"the archive cannot be read: {error.strerror}"
            raise CannotRead(Finding("unreadable", self._path, what)) from error
        self._place += len(data)
        self._packed -= len(data)
        return data

    def _broken(self, why: str) -> CannotRead:
        return CannotRead(Finding("archive_malformed", self._path, f"the member cannot be read: {why}"))


def _folders(members: dict[str, Member]) -> dict[str, dict[str, str]]:
    folders: dict[str, dict[str, str]] = {"": {}}
    for name, member in members.items():
        parent, _, leaf = name.rpartition("/")
        folders.setdefault(parent, {})[leaf] = member.kind
        while parent:
            above, _, leaf = parent.rpartition("/")
            if leaf in folders.setdefault(above, {}):
                break
            folders[above][leaf] = "folder"
            parent = above
    return folders
