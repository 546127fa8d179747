"""A zip file from a stranger to its entries, with bounds on their number, their size and how far they unfold.

Python's own reader knows stored and deflated entries; logs of newer tools hold zstd entries (method 93), which are read
from their raw bytes. Sizes are bounded while unpacking, because the sizes that an archive states are claims.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from dataclasses import dataclass

from labaudit.errors import BadInput

ZSTD = 93
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")


@dataclass(frozen=True)
class ZipBounds:
    """How much an archive may hold."""

    entries: int = 200_000
    entry_bytes: int = 256 << 20
    total_bytes: int = 2 << 30
    ratio: int = 2000
    """Unpacked to packed bytes of one entry; JSON seldom exceeds 100."""
    total_ratio: int = 100
    """Unpacked bytes of all entries to the archive's; what unfolds is held in memory."""
    total_least: int = 256 << 20
    """What an archive may hold in any case, however small it is."""


class EvalZip:
    """Entries of one archive by name."""

    def __init__(self, data: bytes, where: str, bounds: ZipBounds | None = None) -> None:
        self._data = data
        self._where = where
        self._bounds = bounds or ZipBounds()
        self._unpacked = 0
        folded = max(self._bounds.total_least, len(data) * self._bounds.total_ratio)
        self._total = min(self._bounds.total_bytes, folded)
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
            listed = self._zip.infolist()
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, struct.error) as error:
            raise BadInput(f"is no zip file that can be read: {error}", where=where) from error
        if len(listed) > self._bounds.entries:
            raise BadInput(f"has {len(listed)} entries, more than the {self._bounds.entries} allowed", where=where)
        self._entries = {entry.filename: entry for entry in listed}
        self.repeated = len(listed) - len(self._entries)

    def names(self) -> list[str]:
        """All entries, sorted."""
        return sorted(self._entries)

    def read(self, name: str) -> bytes:
        """The unpacked bytes of an entry; BadInput when it is damaged, encrypted, too large or packed unknowably."""
        where = f"{self._where}!{name}"
        if name not in self._entries:
            raise BadInput("is not in the archive", where=where)
        entry = self._entries[name]
        if entry.flag_bits & 0x1:
            raise BadInput("is encrypted", where=where)
        packed = self._packed(entry, where)
        limit = min(self._bounds.entry_bytes, self._total - self._unpacked)
        limit = min(limit, max(1 << 20, len(packed) * self._bounds.ratio))
        data = _unpack(packed, entry.compress_type, limit, where)
        self._unpacked += len(data)
        if zlib.crc32(data) != entry.CRC:
            raise BadInput("is damaged: its checksum does not fit", where=where)
        return data

    def _packed(self, entry: zipfile.ZipInfo, where: str) -> bytes:
        start = entry.header_offset
        header = self._data[start : start + _LOCAL_HEADER.size]
        if len(header) < _LOCAL_HEADER.size or not header.startswith(b"PK\x03\x04"):
            raise BadInput("is damaged: its header is not where the archive says", where=where)
        fields = _LOCAL_HEADER.unpack(header)
        begin = start + _LOCAL_HEADER.size + fields[9] + fields[10]
        packed = self._data[begin : begin + entry.compress_size]
        if len(packed) != entry.compress_size:
            raise BadInput("is cut off", where=where)
        return packed


def _unpack(packed: bytes, method: int, limit: int, where: str) -> bytes:
    try:
        if method == zipfile.ZIP_STORED:
            data = packed[: limit + 1]
        elif method == zipfile.ZIP_DEFLATED:
            data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, limit + 1)
        elif method == ZSTD:
            data = _unpack_zstd(packed, limit + 1)
        else:
            raise BadInput(f"is packed by method {method}, which is not read here", where=where)
    except zlib.error as error:
        raise BadInput(f"is damaged: {error}", where=where) from error
    if len(data) > limit:
        raise BadInput(f"unfolds past {limit} bytes", where=where, hint="a zip bomb, or a log beyond the bounds")
    return data


def _unpack_zstd(packed: bytes, limit: int) -> bytes:
    import zstandard

    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(packed) as stream:
            parts, size = [], 0
            while size < limit:
                part = stream.read(min(1 << 20, limit - size))
                if not part:
                    break
                parts.append(part)
                size += len(part)
            return b"".join(parts)
    except zstandard.ZstdError as error:
        raise zlib.error(str(error)) from error
