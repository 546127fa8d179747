"""Commands given odd names and shut folders: one clear sentence, the documented exit code, never a traceback."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from labaudit.cli import invoke
from labaudit.errors import BadInput
from labaudit.store.lab_folder import LabFolder
from tests.experiments import run, write_experiment


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def _labaudit(*arguments: str | Path) -> Ended:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = invoke([str(argument) for argument in arguments])
    return Ended(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> LabFolder:
    """A lab with one sealed run."""
    folder = tmp_path_factory.mktemp("lab")
    write_experiment(folder, variants=())
    return LabFolder(run(folder).run.path.parent.parent)


@pytest.mark.parametrize("command", ["runs", "status", "keys list", "verify latest", "grade latest"])
def test_a_file_is_no_lab_folder(command: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = _labaudit(*command.split(), "--lab-dir", tmp_path / "file")
    assert done.code == 2
    assert "is no folder" in done.err


@pytest.mark.parametrize("command", ["sbom", "analyze", "grade", "compare"])
def test_a_place_that_cannot_be_written_ends_with_a_sentence(command: str, lab: LabFolder, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "requirements.txt").write_text("attrs==23.1.0\n")
    more = ("--lockfile", tmp_path / "requirements.txt") if command == "sbom" else ()
    done = _labaudit(command, "latest", *more, "--lab-dir", lab.path, "--out", tmp_path / "file" / "below")
    assert (done.code, done.out) == (2, "")
    assert "labaudit: " in done.err


def test_the_demo_is_not_put_where_a_file_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert _labaudit("demo", "--engine", "process", "--out", tmp_path / "file").code == 2
    done = _labaudit("demo", "--engine", "process", "--out", tmp_path / "file" / "below")
    assert done.code == 2
    assert "Not a directory" in done.err


def test_a_full_disk_is_the_environment_s_fault(lab: LabFolder) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LabFolder, "runs", _full)
        done = _labaudit("runs", "--lab-dir", lab.path)
    assert done.code == 4
    assert "no space is left on the disk" in done.err


def _full(lab: LabFolder) -> None:
    raise OSError(28, "No space left on device", str(lab.path))


def test_status_of_a_folder_that_is_no_run_is_an_error(tmp_path: Path) -> None:
    done = _labaudit("status", f"{tmp_path}/", "--lab-dir", tmp_path / ".lab")
    assert done.code == 2
    assert "is no run folder" in done.err


def test_a_run_whose_start_was_interrupted_is_not_offered_for_resuming(tmp_path: Path) -> None:
    started = tmp_path / "runs" / "run-20261118T000000Z-00000000"
    started.mkdir(parents=True)
    (started / "resolved_experiment.json").write_text("{}")
    done = _labaudit("status", "--lab-dir", tmp_path)
    assert done.code == 0
    assert "not_started" in done.out
    assert "labaudit resume" not in done.out
    assert _labaudit("resume", "latest", "--lab-dir", tmp_path).code == 2


def test_the_latest_run_is_the_newest_whatever_its_folder_is_called(lab: LabFolder, tmp_path: Path) -> None:
    runs = LabFolder(tmp_path)
    shutil.copytree(lab.find_run("latest").path, runs.runs_folder / "zebra")
    newer = [runs.runs_folder / f"run-99990101T000000Z-0badcafe{suffix}" for suffix in ("", "-2", "-10")]
    for path in newer:
        path.mkdir()
    assert runs.find_run("latest").run_id == "run-99990101T000000Z-0badcafe-10"
    assert runs.run_ids()[0] == "zebra"
    with pytest.raises(BadInput, match="empty"):
        runs.find_run("")


def test_the_digests_of_the_page_are_json_when_asked_for() -> None:
    plain, asked = _labaudit("verify", "--page-digest"), _labaudit("verify", "--page-digest", "--json")
    document = json.loads(asked.out)
    assert plain.out.split()[:2] == [document["verify.html"], "verify.html"]


def test_the_lines_after_a_run_are_commands_that_work(tmp_path: Path) -> None:
    path = write_experiment(tmp_path, variants=())
    assert _labaudit("keys", "new", "--name", "release", "--lab-dir", tmp_path / "keys").code == 0
    key = tmp_path / "keys" / "keys" / "release.key"
    done = _labaudit("run", path, "--lab-dir", tmp_path / "lab", "--key", key, "--quiet")
    assert done.code == 0, done.err
    said = {line.split()[0]: line.split()[1:] for line in done.out.splitlines()}
    checked = _labaudit(*said["check"][1:])
    assert checked.code == 0, checked.out
    report = said["report"]
    assert report[report.index("--lab-dir") + 1] == str(tmp_path / "lab")


def test_the_harness_s_bill_is_made_again_from_the_source_that_the_run_keeps(tmp_path: Path) -> None:
    path = write_experiment(tmp_path, variants=(), harness={"lockfile": "harness/requirements.txt"})
    (tmp_path / "harness" / "requirements.txt").write_text("attrs==23.1.0\n")
    sealed = run(tmp_path, path).run
    (tmp_path / "harness" / "requirements.txt").write_text("attrs==24.0.0\n")
    same = _labaudit("sbom", sealed.path, "--json")
    assert same.code == 0, same.err
    assert [(row["name"], row["result"]) for row in json.loads(same.out)["documents"]] == [
        ("harness.cdx.json", "equal")
    ]
    stored = sealed.sbom / "harness.cdx.json"
    stored.write_text(stored.read_text().replace("23.1.0", "23.1.1"))
    assert _labaudit("sbom", sealed.path).code == 1
