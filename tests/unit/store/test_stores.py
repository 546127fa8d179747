"""Files, artifacts and event logs: whole or not at all, named by content, chained."""

from __future__ import annotations

import errno
import hashlib
import io
import os
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

import pytest

from labaudit.core.clock import FixedClock
from labaudit.core.digest import Digest
from labaudit.core.merkle import tree_root
from labaudit.errors import BadInput, Contradiction, EnvironmentLacks
from labaudit.records.schema_registry import validate
from labaudit.store import atomic
from labaudit.store.artifact_store import ArtifactStore
from labaudit.store.event_log import EventIndex, EventLog, LogIdentity, check_chain, read_events, valid_prefix
from labaudit.store.lab_folder import LabFolder

IDENTITY = LogIdentity("run-1", "base.t.r0-00000000", "base", "t", 0, 1, Digest.of(b"spec"))


def _log(path: Path, events: int = 5) -> EventLog:
    log = EventLog(path, IDENTITY, clock=FixedClock(datetime(2026, 1, 1, tzinfo=UTC)))
    for number in range(events):
        log.append(f"step.{number}", step_index=number)
    return log


def test_an_interrupted_write_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    target = tmp_path / "f.json"
    atomic.write_json(target, {"a": 1})
    with pytest.raises(TypeError), atomic.replacing(target) as stream:
        stream.write(b"half" + None)  # type: ignore[operator]
    assert target.read_bytes() == b'{"a":1}'
    assert list(tmp_path.iterdir()) == [target]


def test_a_full_disk_is_said_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(EnvironmentLacks, match="no space"):
        atomic.write_bytes(tmp_path / "f", b"x")
    assert not list(tmp_path.iterdir())


def test_a_directory_or_missing_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="directory"):
        atomic.read_bytes(tmp_path)
    with pytest.raises(BadInput, match="no such file"):
        atomic.read_bytes(tmp_path / "nope")


def test_artifacts_come_back_as_they_went_in(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    data = os.urandom(3_000_000)
    reference = store.put(data, "text/plain", {"applied": True, "mode": "hash"})
    assert reference == f"artifact://sha256/{hashlib.sha256(data).hexdigest()}"
    assert store.put(io.BytesIO(data), "other/type") == reference
    assert store.get(reference) == data
    assert store.open(reference).read() == data
    assert store.meta(reference) == {"content_type": "text/plain", "redaction": {"applied": True, "mode": "hash"}}
    assert list(store.references()) == [reference]


def test_a_changed_artifact_is_found_when_it_is_read(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    reference = store.put(b"honest")
    store.path(reference).chmod(0o644)
    store.path(reference).write_bytes(b"forged")
    with pytest.raises(Contradiction):
        store.get(reference)
    with pytest.raises(Contradiction):
        store.open(reference).read()


def _put_many(root: str) -> None:
    store = ArtifactStore(Path(root))
    for number in range(50):
        store.put(f"object {number}".encode() * 1000, durable=False)


def test_concurrent_writers_of_the_same_artifacts_agree(tmp_path: Path) -> None:
    context = get_context("spawn")
    writers = [context.Process(target=_put_many, args=(str(tmp_path),)) for _ in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    store = ArtifactStore(tmp_path)
    assert len([store.get(reference) for reference in store.references()]) == 50
    assert not list(tmp_path.rglob(".tmp-*"))


def test_a_log_is_chained_sealed_and_bound_to_its_trial(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    head = _log(path).seal(tmp_path / "events.head")
    lines = path.read_bytes().splitlines()
    assert head["count"] == len(lines) == 6
    assert head["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert head["tree_root"] == tree_root(lines).hex()
    assert check_chain(path, IDENTITY).head == head["head"]
    assert [event["event_type"] for event in read_events(path)][-1] == "trial.sealed"
    assert all(validate("event_envelope_v1", event) == [] for event in read_events(path))
    other = LogIdentity("run-1", "another", "base", "t", 0, 1, IDENTITY.resolved_digest)
    with pytest.raises(Contradiction):
        check_chain(path, other)


def test_a_sealed_log_takes_no_more_events(tmp_path: Path) -> None:
    log = _log(tmp_path / "e")
    log.seal(tmp_path / "head")
    with pytest.raises(BadInput, match="sealed"):
        log.append("late")
    again, _ = EventLog.recover(tmp_path / "e", IDENTITY)
    with pytest.raises(BadInput, match="sealed"):
        again.append("late")


@pytest.mark.parametrize("cut", [1, 17, 200])
def test_a_torn_last_line_is_cut_and_the_log_goes_on(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "e"
    _log(path).close()
    os.truncate(path, path.stat().st_size - cut)
    log, dropped = EventLog.recover(path, IDENTITY)
    assert log.count == 4
    assert dropped > 0
    log.append("more")
    log.close()
    assert check_chain(path, IDENTITY).count == 5


def test_an_edited_event_ends_the_valid_prefix_there(tmp_path: Path) -> None:
    path = tmp_path / "e"
    _log(path).close()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"step.2", b"step.9"))
    assert valid_prefix(path, IDENTITY)[1].count == 2
    with pytest.raises(Contradiction, match="chain breaks"):
        check_chain(path, IDENTITY)


def test_events_are_found_by_seq(tmp_path: Path) -> None:
    _log(tmp_path / "e").close()
    index = EventIndex(tmp_path / "e")
    assert len(index) == 5
    assert index.at(3)["event_type"] == "step.3"
    with pytest.raises(BadInput, match="no event 5"):
        index.at(5)


def test_runs_are_found_by_id_prefix_latest_and_path(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path / ".lab")
    with pytest.raises(BadInput, match="no run yet"):
        lab.find_run("latest")
    first = lab.new_run("run-20260101T000000Z-aaaaaaaa")
    second = lab.new_run("run-20260101T000000Z-aaaaaaaa")
    assert second.run_id.endswith("-2")
    assert lab.find_run(first.run_id).path == first.path
    assert lab.find_run("latest").path == second.path
    assert lab.find_run(str(second.path)).path == second.path
    with pytest.raises(BadInput, match="fits 2 runs"):
        lab.find_run("run-2026")
    with pytest.raises(BadInput, match="no run"):
        lab.find_run("nope")
    trial = first.trial("base.t.r0-12345678")
    trial.path.mkdir(parents=True)
    assert lab.find_trial(f"{first.run_id}/base.t")[1].path == trial.path
    assert lab.find_trial("base.t.r0-12345678")[0].path == first.path
    second.trial("base.t.r0-12345678").path.mkdir(parents=True)
    with pytest.raises(BadInput, match="fits 2 trials"):
        lab.find_trial("base.t.r0-12345678")


def test_an_object_whose_writer_was_stopped_before_its_sidecar_is_cleared_away(tmp_path: Path) -> None:
    """As a full disk leaves it: without this the run could never be sealed."""
    store = ArtifactStore(tmp_path)
    kept, torn, again = store.put(b"kept"), store.put(b"torn"), store.put(b"again")
    store.meta_path(torn).unlink()
    store.meta_path(again).unlink()
    assert store.put(b"again") == again
    store.remove_unfinished()
    assert set(store.references()) == {kept, again}
    assert store.meta(again)["content_type"] == "application/octet-stream"
    ArtifactStore(tmp_path / "nothing").remove_unfinished()
