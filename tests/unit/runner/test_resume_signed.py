"""Resuming a signed run: with its own lab and its own key, to the last signature, wherever it is called from."""

from __future__ import annotations

from pathlib import Path

import pytest

from labaudit.attest.keys import PrivateKey
from labaudit.cli import invoke
from labaudit.errors import BadInput, EnvironmentLacks
from labaudit.pipeline.run import RunRequest, resume_run
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder
from tests.experiments import ECHO, Quiet, run, write_experiment


class Died(BaseException):
    """Stands for a kill: nothing in the pipeline handles it."""


class DiesAt(Quiet):
    """Ends the program when a stage begins."""

    def __init__(self, stage: str) -> None:
        super().__init__()
        self._stage = stage

    def stage(self, text: str) -> None:
        super().stage(text)
        if text.startswith(self._stage):
            raise Died


def _dead_run(folder: Path, stage: str = "analysing") -> LabFolder:
    write_experiment(folder)
    with pytest.raises(Died):
        run(folder, sign=True, progress=DiesAt(stage))
    return LabFolder(folder / ".lab")


def _verifies(lab: LabFolder) -> bool:
    return invoke(["verify", str(lab.find_run("latest").path), "--key", str(lab.public_key)]) == 0


def test_a_run_that_is_named_by_its_path_is_resumed_in_its_own_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = _dead_run(tmp_path / "there")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    path = lab.find_run("latest").path
    assert invoke(["status", str(path)]) == 0
    assert f"labaudit resume {path.name} --lab-dir {lab.path}" in capsys.readouterr().out
    assert invoke(["resume", str(path)]) == 0
    assert f"labaudit site {path.name} --lab-dir {lab.path}" in capsys.readouterr().out
    assert not list(here.iterdir()), "a lab and a key were made where the command was called"
    assert _verifies(lab)


def test_control_takes_a_run_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _dead_run(tmp_path).find_run("latest").path
    monkeypatch.chdir(tmp_path)
    assert invoke(["control", str(path.relative_to(tmp_path)), "stop"]) == 2
    assert f"{path.name}: no trial of this run is running" in capsys.readouterr().err


def test_another_key_than_the_plans_does_not_seal_the_run(tmp_path: Path) -> None:
    lab = _dead_run(tmp_path)
    other = tmp_path / "other.key"
    PrivateKey.generate().save(other, tmp_path / "other.pub")
    for request in (RunRequest(key=other), RunRequest(sign=False)):
        with pytest.raises(BadInput, match="plan of this run was signed"):
            resume_run(lab, lab.find_run("latest"), request, Quiet())
    assert not lab.find_run("latest").sealed
    resume_run(lab, lab.find_run("latest"), RunRequest(), Quiet())
    assert _verifies(lab)


def test_signing_that_was_cut_off_is_finished_with_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_experiment(tmp_path)
    folder = run(tmp_path, sign=True).run
    lab = LabFolder(tmp_path / ".lab")
    whole = {path: path.read_bytes() for path in folder.attestations.rglob("*") if path.is_file()}
    for path in (folder.sums, folder.bundle("eval"), folder.bundle("grades")):
        path.unlink()
    (folder.attestations / f"{atomic.TEMPORARY_PREFIX}0").write_bytes(b"half")
    assert invoke(["status", "--lab-dir", str(lab.path)]) == 0
    assert "interrupted" in capsys.readouterr().out
    assert invoke(["resume", "latest", "--lab-dir", str(lab.path)]) == 0
    assert {path: path.read_bytes() for path in folder.attestations.rglob("*") if path.is_file()} == whole
    assert _verifies(lab)


def test_a_start_that_fails_leaves_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise EnvironmentLacks("no space is left on the disk")

    write_experiment(tmp_path)
    monkeypatch.setattr(atomic, "append_line", full)
    with pytest.raises(EnvironmentLacks):
        run(tmp_path)
    lab = LabFolder(tmp_path / ".lab")
    assert lab.run_ids() == []
    assert not list((lab.path / "live").iterdir())


class FillsTheDisk(Quiet):
    """From the first trial on no sidecar of an artifact can be written; its object, written before it, can."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        super().__init__()
        self._patched = patched

    def stage(self, text: str) -> None:
        super().stage(text)
        if text.startswith("run run-"):
            self._patched.setattr(atomic, "write_first", self._full)

    def _full(self, *_: object, **__: object) -> bool:
        raise EnvironmentLacks("no space is left on the disk", hint="free some space and go on")


def test_a_disk_that_fills_up_says_how_to_go_on_and_the_run_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Answers that differ between attempts: what the first one left would otherwise be stored again by the second.
    write_experiment(tmp_path, agent=ECHO.replace("given[\"task\"][\"name\"]", "os.urandom(8).hex()"))
    lab = LabFolder(tmp_path / ".lab")
    with monkeypatch.context() as patched, pytest.raises(EnvironmentLacks, match="labaudit resume") as caught:
        run(tmp_path, sign=True, progress=FillsTheDisk(patched))
    assert f"--lab-dir {lab.path}" in caught.value.hint
    resume_run(lab, lab.find_run("latest"), RunRequest(), Quiet())
    assert _verifies(lab)
