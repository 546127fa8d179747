"""A bundle is one zip with the same bytes everywhere; a hostile archive is refused before it is expanded."""

from __future__ import annotations

import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

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
