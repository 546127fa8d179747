"""How commands end when readers leave, disks are full or code is wrong: documented exit codes, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from labaudit.cli import invoke
from labaudit.cli.ending import TRACEBACK_VARIABLE

LABAUDIT = (sys.executable, "-m", "labaudit")


def _into_a_pipe_that_nobody_reads(*words: str, errors_too: bool = False) -> tuple[int, bytes]:
    reader, writer = os.pipe()
    os.close(reader)
    stderr = writer if errors_too else subprocess.PIPE
    try:
        done = subprocess.run([*LABAUDIT, *words], stdout=writer, stderr=stderr, check=False, timeout=60)
    finally:
        os.close(writer)
    return done.returncode, done.stderr or b""


def test_a_reader_that_leaves_does_not_change_the_exit_code(tmp_path: Path) -> None:
    assert _into_a_pipe_that_nobody_reads("schema", "list") == (0, b"")
    assert _into_a_pipe_that_nobody_reads("--help") == (0, b"")
    code, said = _into_a_pipe_that_nobody_reads("verify", str(tmp_path / "none"))
    assert code == 2
    assert b"Traceback" not in said
    # Words on stderr go the same way: `labaudit run ... 2>&1 | head` must not end a run.
    assert _into_a_pipe_that_nobody_reads("init", str(tmp_path / "new"), errors_too=True)[0] == 0
    assert (tmp_path / "new" / "experiment.yaml").is_file()


def test_output_that_does_not_fit_is_an_environment_that_lacks_something() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*LABAUDIT, "schema", "list"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 4
    assert b"no space" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_name_that_is_no_utf8_can_be_spoken_of(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/caf\xe9"
    done = subprocess.run([*LABAUDIT, "validate", odd], capture_output=True, check=False)
    assert done.returncode == 2
    assert b"there is no such file" in done.stderr
    assert b"Traceback" not in done.stderr


def test_an_error_of_the_system_names_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(_: str) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path / "lab"))

    monkeypatch.setattr("labaudit.store.lab_folder.LabFolder.run_ids", refused)
    assert invoke(["runs"]) == 4
    assert f"{tmp_path / 'lab'}: cannot be used: Permission denied" in capsys.readouterr().err


def test_a_defect_of_ours_is_no_verdict(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(_: object) -> None:
        raise TypeError("no such thing")

    monkeypatch.setattr("labaudit.store.lab_folder.LabFolder.run_ids", broken)
    monkeypatch.delenv(TRACEBACK_VARIABLE, raising=False)
    assert invoke(["runs"]) == 4
    said = capsys.readouterr().err
    assert "an error inside labaudit: TypeError: no such thing" in said
    assert TRACEBACK_VARIABLE in said
    assert "Traceback" not in said
    monkeypatch.setenv(TRACEBACK_VARIABLE, "1")
    assert invoke(["runs"]) == 4
    assert "Traceback" in capsys.readouterr().err
