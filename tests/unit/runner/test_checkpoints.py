"""Checkpoints: a folder comes back as it was, the same folder gives the same bytes, hostile archives are refused."""

from __future__ import annotations

import io
import mmap
import os
import random
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from labaudit.core.clock import SystemClock
from labaudit.core.digest import Digest
from labaudit.core.redaction import Redactor
from labaudit.errors import BadInput, Contradiction
from labaudit.evidence.recorder import Recorder
from labaudit.records.ids import Ids
from labaudit.runner.checkpoints.archive import extract, write_archive
from labaudit.runner.checkpoints.checkpoint import CheckpointManager, RuntimeState, read_checkpoints, restore
from labaudit.runner.checkpoints.tree import list_tree, read_manifest
from labaudit.store.artifact_store import ArtifactStore
from labaudit.store.event_log import EventLog, LogIdentity
from labaudit.store.run_folder import TrialFolder
from tests.experiments import document, only_trial, run, write_experiment

DIGEST = Digest.of(b"resolved")
ODD_NAMES = ["with space", "ünïcode", "new\nline", "-dash", "a" * 200, "quote'\"", "\udcff\udcfe", "tab\there", "日本"]


def _fill(root: Path, files: int = 60, seed: int = 1) -> None:
    rng = random.Random(seed)
    root.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        folder = root / f"d{number % 7}" / f"e{number % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"f{number}"
        path.write_bytes(rng.randbytes(rng.randrange(0, 3000)))
        path.chmod(0o755 if number % 5 == 0 else 0o644)
    for name in ODD_NAMES:
        (root / name).write_text(name, errors="surrogateescape")
    (root / "empty" / "inner").mkdir(parents=True)
    os.symlink("d0/e0/f0", root / "link")
    os.symlink("../d1", root / "d0" / "up")


def _manager(tmp_path: Path, redactor: Redactor | None = None) -> tuple[CheckpointManager, TrialFolder, ArtifactStore]:
    ids = Ids(run_id="r", trial_id="t", variant_id="v", task_id="k", repl_idx=0)
    trial = TrialFolder(tmp_path / "t")
    store = ArtifactStore(tmp_path / "artifacts")
    log = EventLog(trial.events, LogIdentity("r", "t", "v", "k", 0, 1, DIGEST))
    recorder = Recorder(log, store, redactor)
    return CheckpointManager(trial, recorder, ids, 1, DIGEST, SystemClock()), trial, store


def _state(step: int) -> RuntimeState:
    return RuntimeState("every_steps", step, 0, budgets={"steps": step})


def test_a_folder_with_odd_names_links_empty_folders_and_exec_bits_comes_back(tmp_path: Path) -> None:
    manager, trial, store = _manager(tmp_path)
    work, back = tmp_path / "work", tmp_path / "back"
    _fill(work)
    back.mkdir()
    manager.save("one", {"workspace": work}, _state(1))
    restore(trial, store, "one", {"workspace": back}, max_bytes=1 << 30)
    assert list_tree(back).manifest() == list_tree(work).manifest()
    assert (back / "d0" / "e0" / "f0").stat().st_mode & 0o111
    assert os.readlink(back / "link") == "d0/e0/f0"
    assert (back / "empty" / "inner").is_dir()


def test_two_saves_of_one_tree_have_one_digest(tmp_path: Path) -> None:
    _fill(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b", symlinks=True)
    archives = []
    for name in ("a", "b"):
        sink = io.BytesIO()
        write_archive(tmp_path / name, list_tree(tmp_path / name).entries, sink)
        archives.append(sink.getvalue())
    assert archives[0] == archives[1]
    assert list_tree(tmp_path / "a").manifest() == list_tree(tmp_path / "b").manifest()


def test_a_later_checkpoint_holds_what_changed_and_restores_whole(tmp_path: Path) -> None:
    manager, trial, store = _manager(tmp_path)
    work = tmp_path / "work"
    _fill(work)
    manager.save("one", {"workspace": work}, _state(1))
    (work / "d0" / "e0" / "f0").write_bytes(b"changed")
    (work / "new").write_bytes(b"new")
    shutil.rmtree(work / "d3")
    (work / "link").unlink()
    (work / "link").mkdir()
    second = manager.save("two", {"workspace": work}, _state(2))
    assert second.surfaces[0].method == "changed_files"
    assert second.surfaces[0].changed == 3
    assert second.surfaces[0].removed
    for label in ("one", "two"):
        (tmp_path / label).mkdir()
        restore(trial, store, label, {"workspace": tmp_path / label}, max_bytes=1 << 30)
    assert list_tree(tmp_path / "two").manifest() == list_tree(work).manifest()
    assert list_tree(tmp_path / "one").manifest() == store.get(read_checkpoints(trial)["one"].surfaces[0].manifest_ref)


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no tmpfs that any user may write to")
def test_what_is_written_through_a_mapping_is_seen_though_its_times_stay(tmp_path: Path) -> None:
    manager, trial, store = _manager(tmp_path)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        path = Path(name, "mapped")
        path.write_bytes(b"a" * 4096)
        with path.open("r+b") as stream, mmap.mmap(stream.fileno(), 4096) as mapped:
            mapped[0:1] = b"b"
            manager.save("one", {"workspace": Path(name)}, _state(1))
            mapped[0:1] = b"c"
            second = manager.save("two", {"workspace": Path(name)}, _state(2))
    assert second.surfaces[0].changed == 1
    (tmp_path / "back").mkdir()
    restore(trial, store, "two", {"workspace": tmp_path / "back"}, max_bytes=1 << 20)
    assert (tmp_path / "back" / "mapped").read_bytes() == b"c" + b"a" * 4095


def test_links_out_devices_and_fifos_are_left_out_and_said(tmp_path: Path) -> None:
    manager, _, _ = _manager(tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    os.symlink("/etc/passwd", work / "absolute")
    os.symlink("../../x", work / "climbing")
    os.mkfifo(work / "pipe")
    saved = manager.save("one", {"workspace": work}, _state(1))
    assert saved.ext is not None
    assert saved.ext["left_out_total"] == 3
    assert saved.surfaces[0].files == 0


def test_a_file_that_is_nearly_all_hole_is_left_out_instead_of_read_for_ever(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for name, size in (("endless", 1 << 42), ("also", 1 << 42), ("small", 1 << 20)):
        with (work / name).open("wb") as stream:
            stream.truncate(size)
    (work / "full").write_bytes(b"x" * 100_000)
    tree = list_tree(work)
    assert [entry.path for entry in tree.entries] == [b"full", b"small"]
    assert [line.partition(":")[0] for line in tree.left_out] == ["also", "endless"]
    manager, trial, store = _manager(tmp_path)
    saved = manager.save("one", {"workspace": work}, _state(1))
    assert saved.to_json()["ext"]["left_out_total"] == 2
    (tmp_path / "back").mkdir()
    restore(trial, store, "one", {"workspace": tmp_path / "back"}, max_bytes=4 << 20)
    assert list_tree(tmp_path / "back").entries == tree.entries


@pytest.mark.skipif(os.geteuid() != 0, reason="root can become a user who is shut out")
def test_what_the_harness_made_unreadable_is_left_out_and_said(tmp_path: Path) -> None:
    work = Path(tempfile.mkdtemp(prefix="la-shut-"))
    try:
        (work / "open").write_text("x")
        for name in ("file", "folder/inner"):
            (work / name).parent.mkdir(exist_ok=True)
            (work / name).write_text("y")
        for path in (work, *work.rglob("*")):
            os.chown(path, 65534, 65534)
        for name in ("file", "folder"):
            (work / name).chmod(0)
        os.seteuid(65534)
        try:
            tree = list_tree(work)
            work.chmod(0)
            shut = list_tree(work)
        finally:
            os.seteuid(0)
        assert [entry.path for entry in tree.entries] == [b"open"]
        assert tree.left_out == ("file: cannot be read: Permission denied", "folder: cannot be read: Permission denied")
        assert (shut.entries, shut.left_out) == ((), (".: cannot be read: Permission denied",))
    finally:
        shutil.rmtree(work)


def test_a_secret_in_the_workspace_is_taken_out_and_the_checkpoint_says_that_it_cannot_be_restored(
    tmp_path: Path,
) -> None:
    manager, trial, store = _manager(tmp_path, Redactor(secrets={"KEY": "very-secret"}))
    work = tmp_path / "work"
    work.mkdir()
    (work / "env").write_text("KEY=very-secret")
    saved = manager.save("one", {"workspace": work}, _state(1))
    assert saved.restorable is False
    assert all(b"very-secret" not in store.get(reference) for reference in store.references())
    with pytest.raises(BadInput, match="redacted"):
        restore(trial, store, "one", {"workspace": tmp_path / "x"}, max_bytes=1)


def test_an_unknown_label_and_another_trials_checkpoint_are_refused(tmp_path: Path) -> None:
    manager, trial, store = _manager(tmp_path)
    (tmp_path / "work").mkdir()
    manager.save("one", {"workspace": tmp_path / "work"}, _state(1))
    with pytest.raises(BadInput, match="no checkpoint 'two'"):
        restore(trial, store, "two", {}, max_bytes=1)
    shutil.copytree(trial.path, tmp_path / "other")
    with pytest.raises(Contradiction, match="another trial"):
        restore(TrialFolder(tmp_path / "other"), store, "one", {}, max_bytes=1)


def test_a_corrupted_archive_is_found(tmp_path: Path) -> None:
    manager, trial, store = _manager(tmp_path)
    work, back = tmp_path / "work", tmp_path / "back"
    _fill(work)
    back.mkdir()
    saved = manager.save("one", {"workspace": work}, _state(1))
    assert saved.surfaces[0].archive_ref is not None
    path = store.path(saved.surfaces[0].archive_ref)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(bytes(data))
    with pytest.raises((BadInput, Contradiction)):
        restore(trial, store, "one", {"workspace": back}, max_bytes=1 << 30)


def _member(name: str, kind: bytes = tarfile.REGTYPE, data: bytes = b"x", link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(data) if kind == tarfile.REGTYPE else 0
    return info


def _tar(*members: tarfile.TarInfo) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info in members:
            archive.addfile(info, io.BytesIO(b"x" * info.size))
    return sink.getvalue()


def _sized(name: str, size: int) -> tarfile.TarInfo:
    info = _member(name)
    info.size = size
    return info


HOSTILE: dict[str, Callable[[], bytes]] = {
    "climbs out": lambda: _tar(_member("../out")),
    "climbs out later": lambda: _tar(_member("a/../../out")),
    "absolute": lambda: _tar(_member("/tmp/labaudit-hostile")),
    "dot": lambda: _tar(_member("./a")),
    "empty part": lambda: _tar(_member("a//b")),
    "dots alone": lambda: _tar(_member("..")),
    "link out, absolute": lambda: _tar(_member("l", tarfile.SYMTYPE, link="/etc/passwd")),
    "link out, climbing": lambda: _tar(_member("l", tarfile.SYMTYPE, link="../../x")),
    "link out, hidden": lambda: _tar(_member("l", tarfile.SYMTYPE, link="a/../../x")),
    "write through a link": lambda: _tar(
        _member("d", tarfile.DIRTYPE), _member("l", tarfile.SYMTYPE, link="d"), _member("l/f")
    ),
    "hard link": lambda: _tar(_member("f"), _member("h", tarfile.LNKTYPE, link="f")),
    "hard link out": lambda: _tar(_member("h", tarfile.LNKTYPE, link="/etc/passwd")),
    "character device": lambda: _tar(_member("c", tarfile.CHRTYPE)),
    "block device": lambda: _tar(_member("b", tarfile.BLKTYPE)),
    "fifo": lambda: _tar(_member("p", tarfile.FIFOTYPE)),
    "contiguous file": lambda: _tar(_member("c", tarfile.CONTTYPE)),
    "too large": lambda: _tar(_sized("big", 3 << 20)),
    "many that are too large together": lambda: _tar(*(_sized(f"f{n}", 600_000) for n in range(4))),
    "cut off": lambda: _tar(_sized("f", 100_000))[:5000],
    "parent is a file": lambda: _tar(_member("f"), _member("f/g")),
    "no parent": lambda: _tar(_member("nowhere/f")),
    "garbage": lambda: b"\x00garbage" * 1000,
    "a name without end": lambda: _tar(_member("n" * 5000)),
    "empty link": lambda: _tar(_member("l", tarfile.SYMTYPE, link="")),
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_hostile_archive_is_refused_and_nothing_appears_outside(name: str, tmp_path: Path) -> None:
    target = tmp_path / "in" / "target"
    target.mkdir(parents=True)
    with pytest.raises(BadInput):
        extract(io.BytesIO(HOSTILE[name]()), target, max_bytes=2 << 20)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]
    assert sorted(path.name for path in (tmp_path / "in").iterdir()) == ["target"]
    assert not Path("/tmp/labaudit-hostile").exists()


SAVES = '''
import json, os, sys, hashlib, datetime, time
given = json.load(open(os.environ["LABAUDIT_TRIAL_INPUT"]))
paths = given["runtime"]["paths"]
seq = 0
stream = open(paths["out"] + "/harness_events.jsonl", "w")
def emit(kind, **more):
    global seq
    now = datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
    stream.write(json.dumps({"event_type": kind, "ts": now, "seq": seq, "ids": given["ids"], **more}) + "\\n")
    stream.flush()
    seq += 1
def control(action):
    while True:
        data = open(given["runtime"]["control_plane"]["path"], "rb").read()
        if json.loads(data)["action"] == action:
            return data
        time.sleep(0.01)
json.dump({"schema_version": "harness_manifest_v1", "created_at": "2026-11-18T00:00:00Z",
  "integration_level": "cli_events", "step": {"semantics": "s"},
  "hooks": {"schema_version": "hook_events_v1", "events_path": "/out/harness_events.jsonl"},
  "control_plane": {"mode": "file", "path": "/state/lab_control.json"}},
  open(paths["out"] + "/harness_manifest.json", "w"))
for step in range(6):
    emit("agent_step_start", step_index=step)
    open(paths["workspace"] + "/notes.txt", "a").write("step %d\\n" % step)
    open(paths["state"] + "/memory_snapshot", "w").write("at %d" % step)
    emit("agent_step_end", step_index=step)
    # asked for every two steps: the runner is waited for, however slow it is
    data = control("checkpoint" if step % 2 else "continue")
    emit("control_ack", step_index=step, control_version="sha256:" + hashlib.sha256(data).hexdigest(),
         action_observed=json.loads(data)["action"])
    control("continue")
json.dump({"schema_version": "trial_output_v1", "ids": given["ids"], "outcome": "success", "answer": "x"},
  open(paths["out"] + "/trial_output.json", "w"))
'''


def test_a_run_saves_checkpoints_every_n_steps_and_at_the_end(tmp_path: Path) -> None:
    write_experiment(
        tmp_path,
        agent=SAVES,
        variants=(),
        tasks=[{"id": "a", "expected": "x"}],
        harness={"integration_level": "cli_events"},
        runtime={"checkpoints": {"every_steps": 2, "at_end": True}},
    )
    trial, record = only_trial(run(tmp_path).run)
    assert record.outcome == "success"
    saved = read_checkpoints(trial)
    assert {"step-2", "step-4", "end"} <= set(saved)
    assert saved["step-2"].memory_ref is not None
    store = ArtifactStore(trial.path.parent.parent / "artifacts")
    (tmp_path / "back").mkdir()
    restore(trial, store, "step-2", {"workspace": tmp_path / "back"}, max_bytes=1 << 20)
    assert (tmp_path / "back" / "notes.txt").read_text().splitlines() == ["step 0", "step 1"]
    assert document(trial.grades)["replay"]["value"] == "best_effort"


@pytest.mark.acceptance
def test_a_thousand_files_and_a_hundred_megabytes_come_back(tmp_path: Path) -> None:
    manager, trial, store = _manager(tmp_path)
    work, back = tmp_path / "work", tmp_path / "back"
    _fill(work, files=1000)
    back.mkdir()
    (work / "big").write_bytes(random.Random(2).randbytes(100 << 20))
    first = manager.save("one", {"workspace": work}, _state(1))
    restore(trial, store, "one", {"workspace": back}, max_bytes=1 << 30)
    assert list_tree(back).manifest() == store.get(first.surfaces[0].manifest_ref)
    assert len(read_manifest(list_tree(back).manifest())) > 1000
