"""Archives from strangers: every packing that logs use, and every way to be damaged or too large."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

import pytest
import zstandard

from labaudit.errors import BadInput
from labaudit.importers.eval_zip import ZSTD, EvalZip, ZipBounds

BOUNDS = ZipBounds(entries=50, entry_bytes=4 << 20, total_bytes=6 << 20, ratio=200)


def packed(entries: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip file; zstd entries are written as stored ones and then relabelled, as no writer here knows them."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED if method == ZSTD else method) as archive:
        for name, data in entries.items():
            archive.writestr(name, zstandard.compress(data) if method == ZSTD else data)
    return relabelled(out.getvalue(), entries) if method == ZSTD else out.getvalue()


def relabelled(data: bytes, entries: dict[str, bytes]) -> bytes:
    """The archive with method 93, and the sizes and checksums of the unpacked bytes."""
    changed = bytearray(data)
    for info in zipfile.ZipFile(io.BytesIO(data)).infolist():
        plain = entries[info.filename]
        start = info.header_offset
        struct.pack_into("<H", changed, start + 8, ZSTD)
        struct.pack_into("<III", changed, start + 14, zlib.crc32(plain), info.compress_size, len(plain))
        central = data.find(b"PK\x01\x02", 0)
        while data[central + 46 : central + 46 + len(info.filename)] != info.filename.encode():
            central = data.find(b"PK\x01\x02", central + 4)
        struct.pack_into("<H", changed, central + 10, ZSTD)
        struct.pack_into("<III", changed, central + 16, zlib.crc32(plain), info.compress_size, len(plain))
    return bytes(changed)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, ZSTD])
def test_stored_deflated_and_zstd_entries_are_read(method: int) -> None:
    entries = {"header.json": b'{"a": 1}' * 50, "samples/1.json": b"x" * 1000}
    archive = EvalZip(packed(entries, method), "log.eval")
    assert archive.names() == ["header.json", "samples/1.json"]
    assert {name: archive.read(name) for name in archive.names()} == entries


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, ZSTD])
def test_an_entry_that_unfolds_too_far_is_refused_before_it_fills_memory(method: int) -> None:
    bomb = packed({"header.json": b"\0" * (64 << 20)}, method)
    assert len(bomb) < 100_000
    with pytest.raises(BadInput, match="unfolds past"):
        EvalZip(bomb, "log.eval", BOUNDS).read("header.json")


def test_the_sum_of_all_entries_is_bounded_too() -> None:
    archive = EvalZip(
        packed({f"{n}": bytes([n]) * (2 << 20) for n in range(4)}, zipfile.ZIP_STORED), "log.eval", BOUNDS
    )
    assert all(archive.read(name) for name in archive.names()[:3])
    with pytest.raises(BadInput, match="unfolds past"):
        archive.read("3")


def test_too_many_entries_are_refused() -> None:
    with pytest.raises(BadInput, match="has 60 entries"):
        EvalZip(packed({str(n): b"" for n in range(60)}), "log.eval", BOUNDS)


@pytest.mark.parametrize("keep", [0, 10, 40, 0.3, 0.6, 0.99])
def test_a_cut_off_archive_is_a_sentence(keep: float) -> None:
    data = packed({"header.json": bytes(range(256)) * 40, "b": b"y" * 5000})
    cut = data[: int(keep * len(data)) if keep < 1 else int(keep)]
    with pytest.raises(BadInput):
        EvalZip(cut, "log.eval").read("header.json")


def test_a_flipped_byte_in_an_entry_is_found() -> None:
    data = bytearray(packed({"header.json": b"{}" * 500}, zipfile.ZIP_STORED))
    data[100] ^= 1
    with pytest.raises(BadInput, match="checksum"):
        EvalZip(bytes(data), "log.eval").read("header.json")


@pytest.mark.parametrize(("offset", "value", "said"), [(8, 12, "method 12"), (6, 1, "encrypted")])
def test_unknown_packing_and_encryption_are_named(offset: int, value: int, said: str) -> None:
    data = bytearray(packed({"h": b"x" * 100}))
    central = data.find(b"PK\x01\x02")
    struct.pack_into("<H", data, offset, value)
    struct.pack_into("<H", data, central + offset + 2, value)
    with pytest.raises(BadInput, match=said):
        EvalZip(bytes(data), "log.eval").read("h")


def test_an_entry_that_is_not_there_is_named() -> None:
    with pytest.raises(BadInput, match="is not in the archive"):
        EvalZip(packed({"a": b""}), "log.eval").read("b")


def test_a_name_that_stands_twice_is_counted() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a", b"1")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a", b"2")
    opened = EvalZip(out.getvalue(), "log.eval")
    assert (opened.repeated, opened.read("a")) == (1, b"2")
