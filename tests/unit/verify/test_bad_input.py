"""Whatever stands at the path: a verdict and an exit code; no traceback, no file written, no link followed."""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from labaudit.errors import LabauditError
from labaudit.verify.verdict import Report
from tests.make_run import MadeRun
from tests.unit.verify.conftest import codes

JUNK = [
    b"",
    b"\x00" * 64,
    b"{}",
    b"[]",
    b"null",
    b"{",
    b"\xff\xfe",
    b'{"a":1}' * 3,
    b"[" * 100_000,
    b"1e999",
    b"\n" * 1000,
]


def state_of(folder: Path) -> dict[str, tuple[int, int, int]]:
    found = (path for path in [folder, *folder.rglob("*")])
    return {str(path): (path.lstat().st_mode, path.lstat().st_size, path.lstat().st_mtime_ns) for path in found}


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
def test_every_kind_of_file_may_hold_anything(
    copied: Path, completed: list[str], check: Callable[..., Report], junk: bytes
) -> None:
    names = [
        "manifest.json", "schedule.jsonl", "inclusion.json", "grades.json", "resolved_experiment.json",
        "attestation.json", "artifacts.jsonl", "analysis/summary.json", "analysis/comparisons.json",
        "sbom/image.cdx.json", "attestations/checkpoint", "attestations/run.sigstore.json", "attestations/root.layout",
        "attestations/SHA256SUMS", f"attestations/proofs/{completed[0]}.tlog-proof",
        *(f"trials/{completed[0]}/{name}" for name in (
            "trial_record.json", "events.jsonl", "events.head", "grades.json", "state_inventory.json",
            "artifacts.jsonl",
        )),
    ]  # fmt: skip
    for name in names:
        path = copied / name
        before = path.read_bytes()
        path.write_bytes(junk)
        report = check(copied)
        path.write_bytes(before)
        assert report.exit_code in (1, 2), (name, report.verdict)
        assert any(finding.path.startswith(name) for finding in report.findings), (name, report.findings)
    assert check(copied).verdict == "verified"


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
def test_a_file_that_is_nothing_we_know_is_refused_in_words(
    tmp_path: Path, check: Callable[..., Report], junk: bytes
) -> None:
    for suffix in (".zip", ".json", ".tlog-proof", ""):
        path = tmp_path / f"target{suffix}"
        path.write_bytes(junk)
        try:
            code = check(path).exit_code
        except LabauditError as error:
            code = error.exit_code
        assert code == 2


def test_an_empty_folder_and_an_unsealed_run_are_malformed(
    copied: Path, tmp_path: Path, check: Callable[..., Report]
) -> None:
    (tmp_path / "empty").mkdir()
    shutil.rmtree(copied / "attestations")
    (copied / "manifest.json").unlink()
    for path in (tmp_path / "empty", copied):
        report = check(path)
        assert report.exit_code == 2
        assert "manifest_missing" in codes(report)


def test_a_manifest_that_is_gone_from_a_signed_run_is_a_failure(copied: Path, check: Callable[..., Report]) -> None:
    (copied / "manifest.json").unlink()
    assert ("file_missing", "manifest.json") in {item[:2] for item in check(copied).findings}


def test_devices_pipes_and_sockets_are_not_opened(tmp_path: Path, check: Callable[..., Report]) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(tmp_path)
        try:
            server.bind("s")
        finally:
            os.chdir(here)
        for path in (tmp_path / "pipe", tmp_path / "s", Path("/dev/zero")):
            report = check(path)
            assert (report.exit_code, codes(report)) == (1, {"special_file"})


def test_a_folder_that_links_to_itself_or_nests_deep_ends(copied: Path, check: Callable[..., Report]) -> None:
    (copied / "loop").symlink_to(".")
    deep = copied / "d"
    for _ in range(300):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "file").write_bytes(b"x")
    report = check(copied)
    assert {"link_found", "extra_file"} <= codes(report)


def test_the_target_itself_may_be_a_link_and_nothing_below_it(
    made: MadeRun, tmp_path: Path, check: Callable[..., Report]
) -> None:
    (tmp_path / "here").symlink_to(made.run.path)
    assert check(tmp_path / "here").verdict == "verified"
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert check(tmp_path / "dangling").exit_code == 2


def test_names_that_are_no_text_are_shown_escaped(copied: Path, check: Callable[..., Report]) -> None:
    with open(os.fsencode(copied) + b"/bad\xff\x1bname", "wb") as stream:
        stream.write(b"x")
    report = check(copied)
    assert "name_undecodable" in codes(report)
    from labaudit.verify.render import report_lines

    assert "\x1b" not in "".join(report_lines(report))


def test_verifying_writes_nothing(copied: Path, check: Callable[..., Report]) -> None:
    before = state_of(copied)
    check(copied)
    (copied / "grades.json").write_bytes((copied / "grades.json").read_bytes())
    before = state_of(copied)
    check(copied)
    assert state_of(copied) == before


@pytest.fixture
def readable(made: MadeRun) -> Iterator[Path]:
    """A copy that a user without rights can get at, as far as modes allow."""
    with tempfile.TemporaryDirectory(prefix="labaudit-test-") as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / made.run.path.name
        shutil.copytree(made.run.path, path)
        yield path


def as_ordinary_user(work: Callable[[], Report]) -> dict[str, object]:
    """The report as a user without special rights gets it."""
    if os.geteuid() != 0:
        return work().as_json()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            os.write(writing, json.dumps(work().as_json()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        data = stream.read()
    os.waitpid(child, 0)
    return dict(json.loads(data))


@pytest.mark.parametrize("name", ["grades.json", "manifest.json", "attestations/run.sigstore.json", "trials"])
def test_unreadable_is_never_reported_as_tampered(readable: Path, check: Callable[..., Report], name: str) -> None:
    check(readable)  # everything that is imported late is imported now
    (readable / name).chmod(0)
    report = as_ordinary_user(lambda: check(readable))
    (readable / name).chmod(0o755)
    assert report["verdict"] == "malformed", report["findings"]
    assert report["exit_code"] == 2
    assert {finding["code"] for finding in report["findings"]} == {"unreadable"}  # type: ignore[attr-defined]


def test_another_user_verifies_a_run_that_was_moved(readable: Path, check: Callable[..., Report]) -> None:
    check(readable)
    moved = readable.parent / "renamed"
    readable.rename(moved)
    assert as_ordinary_user(lambda: check(moved))["verdict"] == "verified"


def exit_code_with_little_memory(work: Callable[[], Report]) -> int:
    """The exit code of a verification that may use 200 MiB more than this process has."""
    child = os.fork()
    if child == 0:
        code = 9
        try:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20), used + (200 << 20)))
            resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
            code = work().exit_code
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


HUGE = [
    "manifest.json", "grades.json", "schedule.jsonl", "{trial}/events.jsonl", "{trial}/trial_record.json",
    "{trial}/artifacts.jsonl", "attestations/checkpoint", "attestations/run.sigstore.json", "attestations/SHA256SUMS",
    "{trial}/state_inventory.json", "{trial}/grades.json",
]  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="sparse files and RLIMIT_AS as Linux has them")
def test_a_huge_file_anywhere_costs_little_memory(
    copied: Path, completed: list[str], check: Callable[..., Report]
) -> None:
    check(copied)
    for name in HUGE:
        path = copied / name.format(trial=f"trials/{completed[0]}")
        before = path.read_bytes()
        os.truncate(path, 700 << 20)
        code = exit_code_with_little_memory(lambda: check(copied))
        path.write_bytes(before)
        assert code in (1, 2), name


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS as Linux has it")
def test_a_document_of_very_many_values_costs_little_memory(
    copied: Path, completed: list[str], check: Callable[..., Report]
) -> None:
    """Thirty megabytes of empty lists would be a gigabyte of Python objects."""
    check(copied)
    data = b'{"a":[' + b"[]," * 10_000_000 + b"[]]}"
    names = ["manifest.json", "grades.json", "inclusion.json", "resolved_experiment.json", "attestation.json",
             "analysis/summary.json", "sbom/image.cdx.json", "attestations/run.sigstore.json",
             "attestations/root.layout", f"trials/{completed[0]}/state_inventory.json"]  # fmt: skip
    for name in names:
        before = (copied / name).read_bytes()
        (copied / name).write_bytes(data)
        code = exit_code_with_little_memory(lambda: check(copied))
        (copied / name).write_bytes(before)
        assert code in (1, 2), name


def test_the_verdict_is_the_exit_code_although_nobody_reads_to_the_end(readable: Path) -> None:
    command = f"{sys.executable} -m labaudit verify {readable} --json | true; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, check=False, timeout=60)
    assert ended.returncode == 3, ended.stderr
    assert b"Traceback" not in ended.stderr


def test_a_list_without_end_is_not_read_to_its_end(
    copied: Path, check: Callable[..., Report], completed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labaudit.verify.run_view.MAX_ROWS", 5)
    found = {item[:2] for item in check(copied).findings}
    assert ("document_malformed", "schedule.jsonl") in found
    monkeypatch.setattr("labaudit.verify.run_view.MAX_ROWS", 6)
    path = copied / "trials" / completed[0] / "artifacts.jsonl"
    path.write_bytes(path.read_bytes() * 2)
    where = path.relative_to(copied).as_posix()
    assert ("artifact_list_malformed", where) in {item[:2] for item in check(copied).findings}
