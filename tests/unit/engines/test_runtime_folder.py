"""The folder that all sandboxes of a host share: whatever goes wrong with one of them, the others get through."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from labaudit.engines.host.surfaces import owned_folder, reap_folders, remove_folder, runtime_folder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LABAUDIT_RUNTIME_DIR", str(tmp_path / "rt"))
    return runtime_folder()


def test_a_folder_that_is_already_gone_leaves_the_shared_one_open(shared: Path) -> None:
    remove_folder(shared / "0123456789abcdef")
    assert mode(shared) == 0o711


def test_what_a_harness_locked_is_deleted_and_the_shared_folder_stays_open(shared: Path) -> None:
    locked = shared / "0123456789abcdef" / "out" / "locked"
    locked.mkdir(parents=True)
    (locked / "file").write_text("x")
    locked.chmod(0o000)
    remove_folder(shared / "0123456789abcdef")
    assert list(shared.iterdir()) == []
    assert mode(shared) == 0o711


@pytest.mark.parametrize("found", [0o700, 0o777, 0o710])
def test_a_shared_folder_that_is_too_closed_or_too_open_is_set_right(shared: Path, found: int) -> None:
    shared.chmod(found)
    assert mode(runtime_folder()) == 0o711


def test_a_strict_umask_does_not_close_the_shared_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABAUDIT_RUNTIME_DIR", str(tmp_path / "new"))
    before = os.umask(0o077)
    try:
        assert mode(runtime_folder()) == 0o711
    finally:
        os.umask(before)


def test_a_folder_whose_making_or_removal_was_cut_off_is_reaped(shared: Path) -> None:
    mine = owned_folder("kept")
    (shared / "0123456789abcdef" / "in").mkdir(parents=True)  # its owner is gone, the rest is not
    (shared / ".new-fedcba9876543210").mkdir()  # someone is making it now
    (shared / ".new-old").mkdir()
    os.utime(shared / ".new-old", (0, 0))
    assert {item.name for item in reap_folders()} == {"0123456789abcdef", ".new-old"}
    assert {path.name for path in shared.iterdir()} == {mine.name, ".new-fedcba9876543210"}


def test_the_owner_goes_last_so_that_what_cannot_be_removed_is_still_somebodys(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = owned_folder("kept")
    (mine / "deep" / "er").mkdir(parents=True)
    seen: list[bool] = []
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", lambda path, **more: seen.append((mine / "owner").exists()))
        remove_folder(mine)
    assert seen == [True]
    assert (mine / "owner").exists()
    remove_folder(mine)
    assert not mine.exists()
