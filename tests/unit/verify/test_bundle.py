"""A bundle is one zip with the same bytes everywhere; a hostile archive is refused before it is expanded."""

from __future__ import annotations

import io
import random
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from labaudit.attest.bundle_zip import write_bundle
from labaudit.errors import BadInput
from labaudit.verify.verdict import Report
from tests.make_run import MadeRun
from tests.unit.verify.conftest import codes


@pytest.fixture
def bundle(made: MadeRun, tmp_path: Path) -> Path:
    path = tmp_path / "run.zip"
    write_bundle(made.run.path, made.run.run_id, path)
    return path


def rewritten(source: Path, target: Path, change: Callable[[zipfile.ZipFile, zipfile.ZipInfo, bytes], None]) -> Path:
    """A copy of an archive in which `change` writes each member."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            change(new, info, old.read(info))
    return target


def test_a_bundle_verifies_as_it_is(bundle: Path, check: Callable[..., Report]) -> None:
    report = check(bundle)
    assert (report.verdict, report.kind, report.provenance) == ("verified", "bundle", "attested")
    assert report.claims["grades"] == "recomputed"


def test_the_same_run_gives_the_same_bytes_wherever_it_stands(made: MadeRun, bundle: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "another-name"
    shutil.copytree(made.run.path, elsewhere)
    for path in elsewhere.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o600)
    write_bundle(elsewhere, made.run.run_id, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == bundle.read_bytes()


def test_an_unpacked_bundle_is_the_run(bundle: Path, tmp_path: Path, check: Callable[..., Report]) -> None:
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(tmp_path / "out")
    assert check(next((tmp_path / "out").iterdir())).verdict == "verified"


def test_a_run_zipped_by_other_tools_verifies_too(made: MadeRun, tmp_path: Path, check: Callable[..., Report]) -> None:
    shutil.make_archive(str(tmp_path / "zipped"), "zip", made.run.path.parent, made.run.path.name)
    with zipfile.ZipFile(tmp_path / "zipped.zip") as old, zipfile.ZipFile(tmp_path / "files.zip", "w") as new:
        for info in old.infolist():
            if not info.is_dir():
                new.writestr(info, old.read(info))
    assert check(tmp_path / "files.zip").verdict == "verified"


def test_a_changed_member_is_named(bundle: Path, tmp_path: Path, check: Callable[..., Report]) -> None:
    def change(new: zipfile.ZipFile, info: zipfile.ZipInfo, data: bytes) -> None:
        new.writestr(info, data.replace(b"Hello", b"Hullo") if info.filename.endswith("variants/base.json") else data)

    report = check(rewritten(bundle, tmp_path / "changed.zip", change))
    assert report.verdict == "failed"
    assert ("digest_mismatch", "variants/base.json") in {item[:2] for item in report.findings}


def test_a_member_twice_is_refused(bundle: Path, tmp_path: Path, check: Callable[..., Report]) -> None:
    target = tmp_path / "twice.zip"
    shutil.copy(bundle, target)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(target, "a") as archive:
        archive.writestr(archive.infolist()[0].filename, b"another")
    report = check(target)
    assert (report.exit_code, codes(report)) == (2, {"archive_duplicate"})


@pytest.mark.parametrize("name", ["../outside", "/absolute", "run/../../up", "run\\back", "run/./dot", "run//empty"])
def test_a_member_that_leaves_the_archive_is_refused(tmp_path: Path, check: Callable[..., Report], name: str) -> None:
    target = tmp_path / "slip.zip"
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("run/manifest.json", b"{}")
        archive.writestr(name, b"x")
    report = check(target)
    assert (report.exit_code, codes(report)) == (1, {"path_unsafe"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["slip.zip"]


def test_a_bomb_is_refused_before_it_expands(tmp_path: Path, check: Callable[..., Report]) -> None:
    target = tmp_path / "bomb.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run/manifest.json", b"0" * (64 << 20))
    data = bytearray(target.read_bytes())
    # The directory claims four gigabytes for what is a few kilobytes.
    place = data.rfind(b"PK\x01\x02")
    struct.pack_into("<L", data, place + 24, 0xFFFFFFF0)
    target.write_bytes(data)
    report = check(target)
    assert (report.exit_code, codes(report)) == (2, {"archive_bomb"})


def test_a_member_larger_than_its_kind_can_be_is_not_read(tmp_path: Path, check: Callable[..., Report]) -> None:
    target = tmp_path / "large.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run/manifest.json", b" " * (65 << 20))
    report = check(target)
    assert report.exit_code == 2
    assert "too_large" in codes(report)


def test_overlapping_members_are_refused(tmp_path: Path, check: Callable[..., Report]) -> None:
    target = tmp_path / "overlap.zip"
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("run/a", b"a" * 400)
        archive.writestr("run/b", b"b" * 400)
    data = bytearray(target.read_bytes())
    second = data.rfind(b"PK\x01\x02")
    struct.pack_into("<L", data, second + 42, 10)
    target.write_bytes(data)
    assert check(target).exit_code == 2


@pytest.mark.parametrize("keep", [4, 100, -1, -22])
def test_an_archive_that_is_cut_off_is_malformed(
    bundle: Path, tmp_path: Path, check: Callable[..., Report], keep: int
) -> None:
    target = tmp_path / "cut.zip"
    target.write_bytes(bundle.read_bytes()[:keep])
    report = check(target)
    assert (report.exit_code, codes(report)) == (2, {"archive_malformed"})


def test_something_before_or_behind_the_archive_is_refused(
    bundle: Path, tmp_path: Path, check: Callable[..., Report]
) -> None:
    (tmp_path / "before.zip").write_bytes(b"PK" + b"#!/bin/sh\n" + bundle.read_bytes())
    (tmp_path / "behind.zip").write_bytes(bundle.read_bytes() + b"more")
    for name in ("before.zip", "behind.zip"):
        assert check(tmp_path / name).exit_code == 2


def test_links_and_executables_inside_an_archive_are_found(
    bundle: Path, tmp_path: Path, check: Callable[..., Report]
) -> None:
    def change(new: zipfile.ZipFile, info: zipfile.ZipInfo, data: bytes) -> None:
        if info.filename.endswith("variants/base.json"):
            info.external_attr = 0o120777 << 16
        if info.filename.endswith("variants/drop_10p.json"):
            info.external_attr = 0o100755 << 16
        new.writestr(info, data)

    report = check(rewritten(bundle, tmp_path / "odd.zip", change))
    found = {item[:2] for item in report.findings}
    assert {("link_found", "variants/base.json"), ("exec_bit", "variants/drop_10p.json")} <= found


def test_an_encrypted_or_oddly_compressed_member_is_malformed(
    made: MadeRun, tmp_path: Path, check: Callable[..., Report]
) -> None:
    target = tmp_path / "lzma.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("run/manifest.json", b"{}")
    assert codes(check(target)) == {"archive_malformed"}


def test_a_folder_with_a_link_is_not_bundled(copied: Path, tmp_path: Path) -> None:
    (copied / "link").symlink_to("/etc/hostname")
    with pytest.raises(BadInput, match="link"):
        write_bundle(copied, "run", tmp_path / "out.zip")
    assert not (tmp_path / "out.zip").exists()


def names_in(bundle: Path) -> list[zipfile.ZipInfo]:
    with zipfile.ZipFile(bundle) as archive:
        return archive.infolist()


def test_a_changed_byte_of_a_member_is_a_wrong_digest_and_no_broken_archive(
    bundle: Path, tmp_path: Path, check: Callable[..., Report]
) -> None:
    data, rng = bundle.read_bytes(), random.Random(11)
    members = [info for info in names_in(bundle) if info.file_size]
    for info in rng.sample(members, 25):
        at = info.header_offset + 30 + len(info.filename) + rng.randrange(info.file_size)
        flipped = tmp_path / "flipped.zip"
        flipped.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        report = check(flipped)
        path = info.filename.split("/", 1)[1]
        assert report.verdict == "failed", info.filename
        assert any(item.path.startswith(path) for item in report.findings if item.code != "archive_malformed"), path


def test_a_flipped_byte_anywhere_in_the_archive_is_never_a_crash(
    bundle: Path, tmp_path: Path, check: Callable[..., Report]
) -> None:
    data, rng = bundle.read_bytes(), random.Random(12)
    directory = data.index(b"PK\x01\x02")
    for place in [rng.randrange(directory, len(data)) for _ in range(30)] + [rng.randrange(30) for _ in range(15)]:
        flipped = tmp_path / "flipped.zip"
        flipped.write_bytes(data[:place] + bytes([data[place] ^ (1 << rng.randrange(8))]) + data[place + 1 :])
        try:
            assert check(flipped).verdict in {"verified", "failed", "malformed"}
        except BadInput:
            assert place < 2  # no longer an archive at all


# Offsets in the first member's own header, and what is written there.
HEADER = {"flags": (6, 2), "method": (8, 2), "time": (10, 2), "crc": (14, 4), "packed": (18, 4), "size": (22, 4)}


@pytest.mark.parametrize("field", HEADER)
def test_a_member_that_its_header_and_the_directory_describe_in_two_ways_is_refused(
    bundle: Path, check: Callable[..., Report], field: str
) -> None:
    at, length = HEADER[field]
    data = bytearray(bundle.read_bytes())
    data[at : at + length] = bytes(byte ^ 1 for byte in data[at : at + length])
    bundle.write_bytes(data)
    assert [item[:2] for item in check(bundle).findings] == [("archive_malformed", "analysis/comparisons.json")]


def test_bytes_and_members_that_the_directory_does_not_list_are_refused(
    bundle: Path, check: Callable[..., Report]
) -> None:
    data = bundle.read_bytes()
    directory, end = data.index(b"PK\x01\x02"), len(data) - 22
    hidden = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 0, 0, 33, zlib.crc32(b"evil"), 4, 4, 8, 0) + b"evil.txtevil"
    for extra in (b"anything", hidden):
        start = struct.pack("<L", directory + len(extra))
        bundle.write_bytes(data[:directory] + extra + data[directory : end + 16] + start + data[end + 20 :])
        assert codes(check(bundle)) == {"archive_malformed"}


def test_a_file_beside_the_runs_folder_is_extra(bundle: Path, check: Callable[..., Report]) -> None:
    with zipfile.ZipFile(bundle, "a") as archive:
        archive.writestr("evil.txt", "x")
    assert [item[:2] for item in check(bundle).findings] == [("extra_file", "evil.txt")]


def test_a_run_zipped_with_its_folders_or_as_a_stream_verifies_too(
    made: MadeRun, tmp_path: Path, check: Callable[..., Report]
) -> None:
    shutil.make_archive(str(tmp_path / "zipped"), "zip", made.run.path.parent, made.run.path.name)
    assert any(info.is_dir() for info in names_in(tmp_path / "zipped.zip"))
    assert check(tmp_path / "zipped.zip").verdict == "verified"
    streamed = tmp_path / "streamed.zip"
    with streamed.open("wb") as target, zipfile.ZipFile(Unseekable(target), "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(made.run.path.rglob("*")):
            archive.write(path, path.relative_to(made.run.path.parent))
    assert any(info.flag_bits & 8 for info in names_in(streamed))
    assert check(streamed).verdict == "verified"


class Unseekable(io.RawIOBase):
    """What a pipe is: zipfile then writes sizes behind each member."""

    def __init__(self, target: BinaryIO) -> None:
        self._target = target

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._target.write(data)


def test_a_folder_entry_that_holds_bytes_is_refused(bundle: Path, check: Callable[..., Report]) -> None:
    top = names_in(bundle)[0].filename.split("/")[0]
    with zipfile.ZipFile(bundle, "a") as archive:
        archive.writestr(f"{top}/evil/", "hidden")
    assert codes(check(bundle)) == {"archive_malformed"}


def test_a_deflated_member_that_goes_on_after_its_size_is_refused(
    bundle: Path, tmp_path: Path, check: Callable[..., Report]
) -> None:
    target = tmp_path / "longer.zip"

    def longer(new: zipfile.ZipFile, info: zipfile.ZipInfo, data: bytes) -> None:
        new.writestr(info.filename, data + (b"more" if info.filename.endswith("grades.json") else b""), 8)

    rewritten(bundle, target, longer)
    data = bytearray(target.read_bytes())
    for info in names_in(target):
        if info.filename.endswith("/grades.json") and info.filename.count("/") == 1:
            place = data.index(info.filename.encode(), data.index(b"PK\x01\x02")) - 46
            for at in (info.header_offset + 22, place + 24):
                data[at : at + 4] = struct.pack("<L", info.file_size - 4)
    target.write_bytes(data)
    assert ("archive_malformed", "grades.json") in {item[:2] for item in check(target).findings}
