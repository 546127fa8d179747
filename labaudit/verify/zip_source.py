"""A bundle zip to the same bounded bytes that a folder gives, without unpacking it.

A member is read only as far as its entry declares, a name twice is refused because readers would disagree about it, and
what an archive may expand to is bounded before anything is expanded.
"""

from __future__ import annotations

import hashlib
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from labaudit.verify.sources import CannotRead, Entry, too_large
from labaudit.verify.verdict import Finding

_CHUNK = 1 << 20
_EXEC = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
MAX_MEMBERS = 300_000
MAX_DIRECTORY = 48 * 1024 * 1024
MAX_RATIO = 1100
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, ValueError)
_LOCAL_HEADER = struct.Struct("<4s5H3L2H")


class ArchiveRefused(Exception):
    """An archive that cannot stand for a folder, with the finding that says why."""

    def __init__(self, code: str, path: str, message: str) -> None:
        super().__init__(message)
        self.finding = Finding(code, path, message)


class ZipSource:
    """A run inside an archive; members stand under one folder named by the run, or at the top."""

    def __init__(self, path: Path) -> None:
        self.root = path
        self.odd: dict[str, Finding] = {}
        try:
            _bound_directory(path)
            self._zip = zipfile.ZipFile(path)
        except _BROKEN as error:
            raise ArchiveRefused("archive_malformed", path.name, f"is no readable zip: {error}") from error
        except OSError as error:
            raise ArchiveRefused("unreadable", path.name, f"cannot be read: {error.strerror}") from error
        self._members = _members(self._zip, path)
        self._folders = _folders(self._members)

    def entries(self, folder: str) -> list[Entry]:
        """The names in a folder, sorted."""
        return sorted(Entry(name, kind) for name, kind in self._folders.get(folder, {}).items())

    @contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        """A stream over one member."""
        info = self._member(path)
        try:
            with self._zip.open(info) as stream:
                yield stream  # type: ignore[misc]
        except _BROKEN as error:
            raise CannotRead(Finding("archive_malformed", path, f"the member cannot be read: {error}")) from error
        except OSError as error:
            raise CannotRead(Finding("unreadable", path, f"the archive cannot be read: {error.strerror}")) from error

    def read(self, path: str, limit: int) -> bytes:
        """A small member's bytes."""
        info = self._member(path)
        if info.file_size > limit:
            raise CannotRead(too_large(path, info.file_size, limit))
        with self.open(path) as stream:
            return stream.read(limit + 1)

    def size(self, path: str) -> int:
        """The size that a member declares; reading it gives no more."""
        return self._member(path).file_size

    def hash(self, path: str, expected: int | None = None) -> tuple[str, int]:
        """Hex digest and size."""
        if expected is not None and self.size(path) != expected:
            return "", self.size(path)
        hasher, total = hashlib.sha256(), 0
        with self.open(path) as stream:
            while chunk := stream.read(_CHUNK):
                hasher.update(chunk)
                total += len(chunk)
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

    def _member(self, path: str) -> zipfile.ZipInfo:
        info = self._members.get(path)
        if info is None:
            what = "a folder stands there" if path in self._folders else "the file is not in the archive"
            raise CannotRead(Finding("file_missing", path, what))
        mode = info.external_attr >> 16
        if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
            code = "link_found" if stat.S_ISLNK(mode) else "special_file"
            raise CannotRead(Finding(code, path, "the member is no regular file"))
        if mode & _EXEC:
            self.odd[path] = Finding("exec_bit", path, "the file is executable")
        return info


def _bound_directory(path: Path) -> None:
    """zipfile reads the whole directory into memory; its declared size is looked at first."""
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - (1 << 16) - 22))
        tail = stream.read()
    place = tail.rfind(b"PK\x05\x06")
    if place < 0 or len(tail) - place < 22:
        raise zipfile.BadZipFile("it has no end-of-directory record")
    count, length = struct.unpack_from("<HL", tail, place + 10)
    comment = struct.unpack_from("<H", tail, place + 20)[0]
    if comment or len(tail) - place != 22:
        raise zipfile.BadZipFile("something follows its directory")
    if length == 0xFFFFFFFF or count == 0xFFFF:
        length = _large_directory(tail, place)
    if length > MAX_DIRECTORY:
        raise zipfile.BadZipFile(f"its directory of {length} bytes is larger than {MAX_DIRECTORY}")
    if count == 0:
        raise zipfile.BadZipFile("it is empty")


def _large_directory(tail: bytes, place: int) -> int:
    """The directory's size as the zip64 record in front of the end record gives it."""
    record = tail.rfind(b"PK\x06\x06", 0, place)
    if record < 0 or place - record != 76:
        raise zipfile.BadZipFile("its zip64 record is missing or has extra data")
    return int(struct.unpack_from("<Q", tail, record + 40)[0])


def _members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    infos = archive.infolist()
    if len(infos) > MAX_MEMBERS:
        raise ArchiveRefused("too_large", path.name, f"it has {len(infos)} members; unpack it and verify the folder")
    if archive.start_dir and infos and min(info.header_offset for info in infos) != 0:
        raise ArchiveRefused("archive_malformed", path.name, "something stands before its first member")
    prefix = _prefix(infos)
    found: dict[str, zipfile.ZipInfo] = {}
    end = 0
    for info in sorted(infos, key=lambda item: item.header_offset):
        name = _safe_member(info, prefix, path)
        if name in found:
            raise ArchiveRefused("archive_duplicate", name, "the archive names it twice")
        if info.header_offset < end:
            raise ArchiveRefused("archive_bomb", name, "members overlap")
        end = info.header_offset + _LOCAL_HEADER.size + info.compress_size
        found[name] = info
    return {name: info for name, info in found.items() if name}


def _safe_member(info: zipfile.ZipInfo, prefix: str, path: Path) -> str:
    name = info.filename
    if info.orig_filename != name or "\\" in name or name.startswith("/") or ".." in name.split("/"):
        raise ArchiveRefused("path_unsafe", name[:200] or path.name, "a member's name leaves the archive's folder")
    if any(part in ("", ".") for part in name.split("/")):
        raise ArchiveRefused("path_unsafe", name[:200], "a member's name is no plain path")
    if info.flag_bits & 0x1:
        raise ArchiveRefused("archive_malformed", name, "the member is encrypted")
    if info.compress_type not in _METHODS:
        raise ArchiveRefused("archive_malformed", name, f"compression method {info.compress_type} is not used here")
    # Deflate cannot give more than about 1032 to 1; a larger claim is a lie about one of the two sizes.
    if info.file_size > MAX_RATIO * max(info.compress_size, 64):
        raise ArchiveRefused("archive_bomb", name, f"claims {info.file_size} bytes out of {info.compress_size}")
    return name.removeprefix(prefix)


def _prefix(infos: list[zipfile.ZipInfo]) -> str:
    """`<run_id>/` when every member stands below one folder, as `labaudit bundle` writes it."""
    tops = {info.filename.split("/", 1)[0] for info in infos}
    if len(tops) == 1 and all("/" in info.filename for info in infos):
        return tops.pop() + "/"
    return ""


def _folders(members: dict[str, zipfile.ZipInfo]) -> dict[str, dict[str, str]]:
    folders: dict[str, dict[str, str]] = {"": {}}
    for name, info in members.items():
        parent, _, leaf = name.rpartition("/")
        mode = info.external_attr >> 16
        kind = "file"
        if stat.S_IFMT(mode) and not stat.S_ISREG(mode):
            kind = "link" if stat.S_ISLNK(mode) else "special"
        folders.setdefault(parent, {})[leaf] = kind
        while parent:
            above, _, leaf = parent.rpartition("/")
            if leaf in folders.setdefault(above, {}):
                break
            folders[above][leaf] = "folder"
            parent = above
    return folders
