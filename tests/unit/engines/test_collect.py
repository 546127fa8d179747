"""Safe collection beyond what a harness in a sandbox can easily do: races, owners, bounds, names."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from labaudit.engines.running import collect as collect_module
from labaudit.engines.running.collect import MAX_DEPTH, collect, shown


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def taken(out: Path, *, max_bytes: int = 1 << 20) -> tuple[dict[str, int], dict[str, str]]:
    collection = collect(out, out.parent / "taken", max_bytes=max_bytes)
    return {file.path: file.size for file in collection.files}, {item.path: item.kind for item in collection.refused}


def test_files_lose_their_modes_and_owners(out: Path) -> None:
    (out / "run.sh").write_text("x")
    (out / "run.sh").chmod(0o777)
    taken(out)
    assert (out.parent / "taken" / "run.sh").stat().st_mode & 0o7777 == 0o644


def test_bytes_are_bounded_in_all_and_the_rest_is_named(out: Path) -> None:
    for name in "abc":
        (out / name).write_bytes(b"x" * 400)
    files, refused = taken(out, max_bytes=1000)
    assert files == {"a": 400, "b": 400}
    assert refused == {"c": "too_large"}


def test_entries_are_bounded_in_number(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect_module, "MAX_FILES", 5)
    for number in range(10):
        (out / f"f{number}").write_text("")
    files, refused = taken(out)
    assert len(files) == 5
    assert list(refused.values()) == ["too_many"]


def test_a_link_to_a_folder_is_not_entered(out: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("s3cret")
    (out / "dir").symlink_to(secret)
    assert taken(out) == ({}, {"dir": "symlink"})


def test_a_surface_that_is_a_link_or_gone_is_refused_as_a_whole(out: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "key").write_text("s3cret")
    out.rmdir()
    assert taken(out) == ({}, {".": "unreadable"})
    out.symlink_to(tmp_path / "real")
    assert taken(out) == ({}, {".": "unreadable"})


def test_bad_names_count_towards_the_bound_too(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect_module, "MAX_FILES", 5)
    for number in range(10):
        (out / f"bad\n{number}").write_text("")
    files, refused = taken(out)
    assert files == {}
    assert sorted(refused.values()) == ["bad_name"] * 5 + ["too_many"]


def test_a_name_that_swaps_between_file_and_link_never_leads_outside(out: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for make in (lambda path: path.symlink_to(secret), lambda path: path.write_text("open")):
                fresh = out / "fresh"
                make(fresh)
                fresh.rename(out / "target")

    worker = threading.Thread(target=swap)
    (out / "target").write_text("open")
    worker.start()
    try:
        for number in range(300):
            collect(out, tmp_path / f"taken{number}", max_bytes=1 << 20)
    finally:
        stop.set()
        worker.join()
    found = {path.read_text() for path in tmp_path.glob("taken*/target")}
    assert "s3cret" not in found
    assert found <= {"open", ""}


def test_a_fifo_does_not_make_collection_wait(out: Path) -> None:
    os.mkfifo(out / "pipe")
    began = time.monotonic()
    assert taken(out) == ({}, {"pipe": "fifo"})
    assert time.monotonic() - began < 2


def test_a_deep_tree_is_cut_and_its_neighbours_are_taken(out: Path) -> None:
    deep = out.joinpath(*["d"] * (MAX_DEPTH + 3))
    deep.mkdir(parents=True)
    (out / "z").write_text("near")
    files, refused = taken(out)
    assert files == {"z": 4}
    assert list(refused.values()) == ["too_deep"]


@pytest.mark.parametrize(
    ("name", "kept"),
    [("plain.json", True), ("mit Ümlaut", True), ("a\x1b[31m", False), ("tab\there", False), (" lead", False),
     ("back\\slash", False), ("right\u202eleft", False)],
)  # fmt: skip
def test_only_names_that_can_be_shown_are_taken(out: Path, name: str, kept: bool) -> None:
    (out / name).write_text("x")
    files, refused = taken(out)
    assert (name in files) is kept
    assert all(path.isprintable() for path in refused)


def test_names_that_are_no_text_are_escaped() -> None:
    assert shown(("dir", os.fsdecode(b"bad\xff\n"))).isprintable()
