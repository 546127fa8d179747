"""A zip file to its members, only when every reader would see the same ones.

Zip says everything twice, in front of each member and in the directory at the end, and readers differ in what they
believe. Here both must agree, members must follow each other without gaps up to the directory, and what they may expand
to is bounded before anything is expanded.
"""

from __future__ import annotations

import stat
import struct
import zipfile
from pathlib import Path
from typing import BinaryIO, NamedTuple

from labaudit.verify.verdict import Finding

MAX_MEMBERS = 300_000
MAX_DIRECTORY = 48 * 1024 * 1024
MAX_RATIO = 1100
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_LOCAL_HEADER = struct.Struct("<4s5H3L2H")
_STREAMED = 0x8
_MARKED = b"PK\x07\x08"
_UNKNOWN = 0xFFFFFFFF


class ArchiveRefused(Exception):
    """An archive that cannot stand for a folder, with the finding that says why."""

    def __init__(self, code: str, path: str, message: str) -> None:
        super().__init__(message)
        self.finding = Finding(code, path, message)


class Member(NamedTuple):
    """One file of an archive: where its bytes stand, and what the directory says of them."""

    start: int
    packed: int
    size: int
    crc: int
    deflated: bool
    mode: int

    @property
    def kind(self) -> str:
        """file, link or special; an archive made on a system without modes holds files."""
        form = stat.S_IFMT(self.mode)
        if not form or stat.S_ISREG(self.mode):
            return "file"
        return "link" if stat.S_ISLNK(self.mode) else "special"


def read_members(archive: zipfile.ZipFile, stream: BinaryIO, path: Path) -> dict[str, Member]:
    """Members by their path below the run's folder; ArchiveRefused names what cannot be believed."""
    infos = archive.infolist()
    if len(infos) > MAX_MEMBERS:
        raise ArchiveRefused("too_large", path.name, f"it has {len(infos)} members; unpack it and verify the folder")
    prefix = _prefix(infos)
    found: dict[str, Member] = {}
    folders: set[str] = set()
    end = 0
    for info in sorted(infos, key=lambda item: item.header_offset):
        name = _safe_name(info, prefix, path)
        if name in found or name in folders:
            raise ArchiveRefused("archive_duplicate", name, "the archive names it twice")
        if info.header_offset < end:
            raise ArchiveRefused("archive_bomb", name, "members overlap")
        if info.header_offset > end:
            raise ArchiveRefused("archive_malformed", path.name, f"something that is no member stands before {name}")
        start = _local_header(stream, info, name)
        end = start + info.compress_size + _descriptor(stream, info, start + info.compress_size, name)
        if info.filename.endswith("/"):
            folders.add(name)
        else:
            deflated = info.compress_type == zipfile.ZIP_DEFLATED
            mode = info.external_attr >> 16
            found[name] = Member(start, info.compress_size, info.file_size, info.CRC, deflated, mode)
    if end != archive.start_dir:
        raise ArchiveRefused("archive_malformed", path.name, "something that is no member stands before its directory")
    return found


def _local_header(stream: BinaryIO, info: zipfile.ZipInfo, name: str) -> int:
    """Where the member's bytes start; what stands in front of them must be what the directory says."""
    stream.seek(info.header_offset)
    raw = stream.read(_LOCAL_HEADER.size)
    if len(raw) < _LOCAL_HEADER.size:
        raise ArchiveRefused("archive_malformed", name, "the member has no header")
    mark, _, flags, method, time, date, crc, packed, size, length, extra = _LOCAL_HEADER.unpack(raw)
    named = stream.read(length)
    # Sizes past 32 bits stand in an extra field, those of a streamed member behind it.
    sizes = (crc, packed, size)
    known = sizes == (info.CRC, info.compress_size, info.file_size) or (
        crc == info.CRC and packed == size == _UNKNOWN and info.file_size >= _UNKNOWN - 1
    )
    streamed = bool(flags & _STREAMED) and sizes in ((0, 0, 0), (0, _UNKNOWN, _UNKNOWN))
    plain = mark == b"PK\x03\x04" and (flags, method) == (info.flag_bits, info.compress_type)
    plain = plain and _moment(date, time) == info.date_time
    encoding = "utf-8" if flags & 0x800 else "cp437"
    if not plain or not (known or streamed) or named != info.orig_filename.encode(encoding, "replace"):
        raise ArchiveRefused("archive_malformed", name, "the member's own header is not what the directory says")
    return int(info.header_offset + _LOCAL_HEADER.size + length + extra)


def _moment(date: int, time: int) -> tuple[int, ...]:
    day = ((date >> 9) + 1980, (date >> 5) & 0xF, date & 0x1F)
    return (*day, time >> 11, (time >> 5) & 0x3F, (time & 0x1F) * 2)


def _descriptor(stream: BinaryIO, info: zipfile.ZipInfo, place: int, name: str) -> int:
    """The length of what a streamed member has behind it: its sizes once more, in one of four spellings."""
    if not info.flag_bits & _STREAMED:
        return 0
    stream.seek(place)
    raw = stream.read(24)
    for form in ("<3L", "<LQQ"):
        wanted = struct.pack(form, info.CRC, *(size & (_UNKNOWN if form == "<3L" else ~0) for size in _sizes(info)))
        for mark in (_MARKED, b""):
            if raw.startswith(mark + wanted):
                return len(mark + wanted)
    raise ArchiveRefused("archive_malformed", name, "what stands behind the member is not what the directory says")


def _sizes(info: zipfile.ZipInfo) -> tuple[int, int]:
    return info.compress_size, info.file_size


def _safe_name(info: zipfile.ZipInfo, prefix: str, path: Path) -> str:
    name = info.filename
    if info.orig_filename != name or "\\" in name or name.startswith("/") or ".." in name.split("/"):
        raise ArchiveRefused("path_unsafe", name[:200] or path.name, "a member's name leaves the archive's folder")
    if any(part in ("", ".") for part in name.removesuffix("/").split("/")):
        raise ArchiveRefused("path_unsafe", name[:200], "a member's name is no plain path")
    if not name.startswith(prefix):
        raise ArchiveRefused("extra_file", name[:200], f"stands beside the folder {prefix} of the run")
    if info.volume:
        raise ArchiveRefused("archive_malformed", name, "the member says to be in another part of the archive")
    if info.flag_bits & 0x1:
        raise ArchiveRefused("archive_malformed", name, "the member is encrypted")
    if info.compress_type not in _METHODS:
        raise ArchiveRefused("archive_malformed", name, f"compression method {info.compress_type} is not used here")
    if name.endswith("/") and info.file_size:
        raise ArchiveRefused("archive_malformed", name, "a folder cannot hold bytes")
    # Deflate cannot give more than about 1032 to 1; a larger claim is a lie about one of the two sizes.
    if info.file_size > MAX_RATIO * max(info.compress_size, 64):
        raise ArchiveRefused("archive_bomb", name, f"claims {info.file_size} bytes out of {info.compress_size}")
    return name.removeprefix(prefix).removesuffix("/")


def _prefix(infos: list[zipfile.ZipInfo]) -> str:
    """`<run_id>/`, the one folder that holds a manifest, as `labaudit bundle` writes it; nothing for a bare run."""
    names = {info.filename for info in infos}
    tops = {name.split("/", 1)[0] + "/" for name in names if "/" in name}
    with_manifest = {top for top in tops if f"{top}manifest.json" in names}
    if "manifest.json" not in names and len(with_manifest) == 1:
        return with_manifest.pop()
    return tops.pop() if len(tops) == 1 and all("/" in name for name in names) else ""


def bound_directory(path: Path) -> None:
    """zipfile reads the whole directory into memory; its declared size is looked at first, and that it is the last."""
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - (1 << 16) - 22))
        tail = stream.read()
    place = tail.rfind(b"PK\x05\x06")
    if place < 0 or len(tail) - place < 22:
        raise zipfile.BadZipFile("it has no end-of-directory record")
    disk, first, here, count, length, start, comment = struct.unpack_from("<4H2LH", tail, place + 4)
    if comment or len(tail) - place != 22:
        raise zipfile.BadZipFile("something follows its directory")
    if (disk, first) != (0, 0) or here != count:
        raise zipfile.BadZipFile("it says to be one of several parts")
    if _UNKNOWN in (length, start) or count == 0xFFFF:
        length = _large_directory(tail, place)
    elif size - 22 - length != start:
        raise zipfile.BadZipFile("its directory is not where it says")
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


def declared_members(path: Path) -> int | None:
    """How many members the end record counts; None where a zip64 record counts them."""
    with path.open("rb") as stream:
        stream.seek(-22, 2)
        count = int(struct.unpack_from("<H", stream.read(22), 10)[0])
    return None if count == 0xFFFF else count
