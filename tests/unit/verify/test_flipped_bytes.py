"""Any byte of any file of a signed run, changed in any way, is found, and the file that holds it is named."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from labaudit.verify.verdict import Report


def files_of(run: Path) -> list[Path]:
    return sorted(path for path in run.rglob("*") if path.is_file())


def flip_and_check(run: Path, check: Callable[..., Report], seed: int, times: int) -> None:
    files, chance = files_of(run), random.Random(seed)
    missed = []
    for _ in range(times):
        path = chance.choice(files)
        before = path.read_bytes()
        if not before:
            continue
        data = bytearray(before)
        place, change = chance.randrange(len(data)), chance.randrange(1, 256)
        data[place] ^= change
        path.chmod(0o644)
        path.write_bytes(data)
        report = check(run)
        path.write_bytes(before)
        name = path.relative_to(run).as_posix()
        if report.exit_code not in (1, 2) or not any(item.path.startswith(name) for item in report.findings):
            missed.append((name, place, change, report.verdict, [tuple(item[:2]) for item in report.findings]))
    assert not missed, f"{len(missed)} of {times}: {missed[:5]}"


def test_flipped_bytes_are_found_and_their_file_is_named(copied: Path, check: Callable[..., Report]) -> None:
    flip_and_check(copied, check, seed=1, times=120)
    assert check(copied).verdict == "verified"


@pytest.mark.acceptance
@pytest.mark.parametrize("seed", range(4))
def test_two_thousand_flipped_bytes_are_found(copied: Path, check: Callable[..., Report], seed: int) -> None:
    flip_and_check(copied, check, seed=100 + seed, times=500)


def test_every_file_cut_short_or_emptied_is_named(copied: Path, check: Callable[..., Report]) -> None:
    missed = []
    for path in files_of(copied)[::3]:
        before = path.read_bytes()
        path.chmod(0o644)
        path.write_bytes(before[: len(before) // 2])
        name = path.relative_to(copied).as_posix()
        report = check(copied)
        path.write_bytes(before)
        if before and not (report.exit_code in (1, 2) and any(item.path.startswith(name) for item in report.findings)):
            missed.append((name, report.verdict, [tuple(item[:2]) for item in report.findings]))
    assert not missed, missed


def test_every_file_that_is_removed_is_named(copied: Path, check: Callable[..., Report]) -> None:
    missed = []
    for path in files_of(copied)[1::3]:
        aside = copied.parent / "aside"
        path.rename(aside)
        name = path.relative_to(copied).as_posix()
        report = check(copied)
        aside.rename(path)
        if report.exit_code not in (1, 2) or not any(item.path.startswith(name) for item in report.findings):
            missed.append((name, report.verdict, [tuple(item[:2]) for item in report.findings]))
    assert not missed, missed
