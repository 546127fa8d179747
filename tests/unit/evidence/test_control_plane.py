"""The control file is whole at every moment, its version is its sha256, and the log knows it before the harness can."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path

import pytest

from labaudit.errors import BadInput
from labaudit.evidence.control_history import read_control_history
from labaudit.harnesses.control_plane import ControlPlane
from labaudit.records.schema_registry import validate
from labaudit.sdk import read_control


def plane(tmp_path: Path) -> ControlPlane:
    return ControlPlane(tmp_path / "state" / "lab_control.json", tmp_path / "control.jsonl")


def test_the_version_is_the_sha256_of_the_file(tmp_path: Path) -> None:
    control = plane(tmp_path)
    for action, label in (("continue", None), ("checkpoint", "mid"), ("stop", None)):
        version = control.write(action, label)
        data = control.path.read_bytes()
        assert version == "sha256:" + hashlib.sha256(data).hexdigest()
        assert validate("control_plane_v1", json.loads(data)) == []
        assert control.read() == (version, action, label)
        assert read_control(str(control.path)) == (version, action, label, len(control.history) - 1)
    assert read_control_history(control.log) == control.history
    assert control.label_of(control.history[1].control_version) == "mid"
    assert control.label_of("sha256:" + "0" * 64) is None


def test_the_same_action_twice_has_two_versions(tmp_path: Path) -> None:
    control = plane(tmp_path)
    assert control.write("continue") != control.write("continue")


@pytest.mark.parametrize("action", ["", "pause", "STOP"])
def test_an_unknown_action_is_refused_and_not_logged(tmp_path: Path, action: str) -> None:
    control = plane(tmp_path)
    with pytest.raises(BadInput):
        control.write(action)
    assert not control.log.exists()
    with pytest.raises(BadInput):
        control.read()


def test_a_link_that_a_harness_planted_is_replaced_not_followed(tmp_path: Path) -> None:
    control = plane(tmp_path)
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    control.path.parent.mkdir()
    control.path.symlink_to(victim)
    control.write("continue")
    assert victim.read_text() == "untouched"
    assert not control.path.is_symlink()


def test_a_reader_never_sees_half_a_file_and_never_a_version_that_is_not_logged(tmp_path: Path) -> None:
    control = plane(tmp_path)
    control.write("continue")
    done = threading.Event()
    wrong: list[str] = []

    def harness() -> None:
        while not done.is_set():
            seen = read_control(str(control.path))
            if seen.version not in control.log.read_text() or seen.seq is None:
                wrong.append(seen.version)

    thread = threading.Thread(target=harness)
    thread.start()
    for number in range(100):
        control.write("checkpoint", f"n{number}")
    done.set()
    thread.join()
    assert wrong == []


def test_a_log_with_a_changed_entry_is_no_history(tmp_path: Path) -> None:
    control = plane(tmp_path)
    control.write("stop")
    control.log.write_bytes(control.log.read_bytes().replace(b'"stop"', b'"continue"'))
    with pytest.raises(BadInput):
        read_control_history(control.log)


def test_a_folder_in_between_that_a_harness_made_a_link_is_not_entered(tmp_path: Path) -> None:
    state, outside = tmp_path / "state", tmp_path / "outside"
    outside.mkdir()
    control = ControlPlane(state / "deep" / "er" / "c.json", tmp_path / "control.jsonl", root=state)
    control.write("continue")
    assert (state / "deep" / "er" / "c.json").is_file()
    (state / "deep").rename(state / "moved")
    (state / "deep").symlink_to(outside)
    control.write("stop")
    assert list(outside.iterdir()) == []
    assert "stop could not be written" in control.problems[0]


def test_a_harness_that_blocks_the_file_does_not_end_the_trial(tmp_path: Path) -> None:
    control = plane(tmp_path)
    control.write("continue")
    control.path.unlink()
    control.path.mkdir()
    version = control.write("stop")
    assert control.read()[0] == version
    assert len(control.problems) == 1
    assert [path.name for path in control.path.parent.iterdir()] == ["lab_control.json"]
    assert read_control_history(control.log) == control.history


def test_the_first_write_must_succeed(tmp_path: Path) -> None:
    control = plane(tmp_path)
    control.path.mkdir(parents=True)
    with pytest.raises(BadInput):
        control.write("continue")
