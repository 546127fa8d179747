"""Would it happen again, and what if, on a real engine; the process, docker and bubblewrap tests inherit this.

A subclass names its engine. What a replay refuses before anything runs is the same everywhere and tested once.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import threading
from pathlib import Path
from typing import ClassVar

import labaudit.sdk
from labaudit.cli import invoke
from labaudit.pipeline.relive import Relived, fork_trial, replay_trial
from labaudit.pipeline.run import RunRequest
from labaudit.runner.checkpoints.checkpoint import read_checkpoints
from labaudit.runner.live_file import running_trials
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder, TrialFolder
from labaudit.verify.request import Request
from labaudit.verify.targets import verify_target
from tests.engine_contract import until
from tests.experiments import Quiet, document, only_trial, run, write_experiment

SDK = Path(labaudit.sdk.__file__).parent
WALK = '''
import random, time
from labaudit_sdk import Session
with Session.open("walker", "1", level="sdk_full", step_semantics="one move") as lab:
    at = 0
    for number in range(6):
        with lab.step():
            stride = lab.bindings["stride"]
            asked = {"from": at, "stride": stride%(extra)s}
            at = lab.tool("move", asked, lambda r: {"at": r["from"] + r["stride"]})["at"]
            lab.value("clock", time.time)
    lab.finish("success", answer=str(at))
'''

KEEPS = '''
import json, os, time
from labaudit_sdk import Session
with Session.open("keeper", "1", level="sdk_control", step_semantics="one line") as lab:
    notes = lab.trial.paths["workspace"] + "/notes.txt"
    if lab.restored_step is not None:
        lab.continue_after(lab.restored_step)
    made = 0
    while lab._next_step < 6:
        with lab.step() as number:
            open(notes, "a").write("%d:%s\\n" % (number, lab.bindings["word"]))
            # after every second step the runner asks for a checkpoint, however slow it is
            while made and made % 2 == 0 and json.load(open(lab.trial.control_path))["action"] != "checkpoint":
                time.sleep(0.01)
        made += 1
    lab.finish("success", answer=open(notes).read())
'''

REMEMBERS = '''
import random, time
from labaudit_sdk import Session
random.seed(7)
with Session.open("rememberer", "1", level="sdk_control", step_semantics="one throw") as lab:
    state, saved, thrown = lab.trial.paths["state"], [], []
    def save(label):
        open(state + "/memory_snapshot", "w").write(str(len(thrown)))
        open(state + "/rng_state", "w").write(repr(random.getstate()))
        saved.append(label)
    lab.on_checkpoint = save
    while not saved and len(thrown) < 90:
        with lab.step():
            thrown.append(random.random())
            time.sleep(0.2)
    lab.finish("success", answer=str(saved[0]))
'''

Walked = tuple[LabFolder, RunFolder, TrialFolder]


def write_sdk_experiment(folder: Path, engine: str, agent: str, bindings: dict[str, object], **blocks: object) -> None:
    """An experiment of one trial whose harness carries the SDK; `level` and `runtime` are blocks of the spec."""
    level = blocks.pop("level")
    write_experiment(
        folder,
        agent=agent,
        tasks=[{"id": "t", "expected": "6"}],
        variants=(),
        baseline={"id": "base", "bindings": bindings},
        harness={"integration_level": level, "mode": "sdk"},
        runtime={"engine": engine, **blocks},
    )
    shutil.copytree(SDK, folder / "harness" / "labaudit_sdk", ignore=shutil.ignore_patterns("__pycache__"))


def run_one(folder: Path) -> Walked:
    """Runs an experiment of one trial."""
    result = run(folder)
    trial, record = only_trial(result.run)
    assert record.outcome == "success", trial.stderr.read_text()
    return LabFolder(folder / ".lab"), result.run, trial


def walk(folder: Path, engine: str = "process", extra: str = "") -> Walked:
    """A recorded trial of six steps; `extra` goes into what each step asks for."""
    write_sdk_experiment(folder, engine, WALK % {"extra": extra}, {"stride": 1}, level="sdk_full")
    walked = run_one(folder)
    grades = document(walked[2].grades)
    assert grades["integration_level"]["observed"] == "sdk_full"
    assert grades["replay"]["value"] == "strict"
    return walked


def keep(folder: Path, engine: str) -> Walked:
    """A trial of six steps that keeps notes, with checkpoints after every second."""
    write_sdk_experiment(
        folder, engine, KEEPS, {"word": "old"}, level="sdk_control", checkpoints={"every_steps": 2}
    )
    return run_one(folder)


def replay(walked: Walked, *, strict: bool = False) -> Relived:
    """Once more, unsigned."""
    return replay_trial(*walked, RunRequest(sign=False), Quiet(), strict=strict)


def fork(walked: Walked, selector: str, changed: dict[str, object]) -> Relived:
    """From a step on with other bindings, unsigned."""
    return fork_trial(*walked, selector, changed, RunRequest(sign=False), Quiet())


def fingerprint(folder: RunFolder) -> str:
    """All files of a run, names and bytes."""
    hasher = hashlib.sha256()
    for path in sorted(folder.path.rglob("*")):
        if path.is_file():
            hasher.update(str(path).encode() + path.read_bytes())
    return hasher.hexdigest()


class ReliveContract:
    """Inherited by one class per engine."""

    engine: ClassVar[str]

    def test_a_recorded_trial_replays_strictly_without_divergence_and_leaves_its_parent_alone(
        self, tmp_path: Path
    ) -> None:
        walked = walk(tmp_path, self.engine)
        lab, parent, _ = walked
        before = fingerprint(parent)
        done = replay(walked, strict=True)
        assert (done.mode, done.comparison.total) == ("boundaries", 0)
        assert done.comparison.compared > 12
        assert fingerprint(parent) == before
        child = done.result.run
        assert child.path != parent.path
        assert document(child.path / "lineage.json")["parent"]["manifest_digest"] == done.parent.manifest_digest
        assert verify_target(child.path, Request(integrity_only=True)).exit_code == 0
        assert document(lab.lineage)["child"]["run_id"] == child.run_id
        again, _ = only_trial(child)
        assert document(again.state_inventory)["ext"]["engine"] == self.engine

    def test_an_agent_that_asks_the_clock_behind_the_record_fails_at_that_boundary(self, tmp_path: Path) -> None:
        done = replay(walk(tmp_path, self.engine, extra=', "now": time.time()'), strict=True)
        assert not done.holds
        first = done.comparison.listed[0]
        assert (first.what, first.position) == ("boundary", 0)
        assert first.expected is not None
        _, record = only_trial(done.result.run)
        assert record.outcome == "error"

    def test_a_fork_at_step_three_of_six_changes_only_what_follows(self, tmp_path: Path) -> None:
        walked = walk(tmp_path, self.engine)
        before = fingerprint(walked[1])
        done = fork(walked, "step:3", {"stride": 10})
        assert done.comparison.total == 0
        again, record = only_trial(done.result.run)
        assert record.outcome == "success", again.stderr.read_text()
        assert document(again.trial_output)["answer"] == "33"
        assert record.ids.variant_id == "base.fork"
        lineage = document(done.result.run.path / "lineage.json")
        assert (lineage["kind"], lineage["selector"], lineage["set"]) == ("fork", "step:3", {"stride": 10})
        assert lineage["parent"]["manifest_digest"] == done.parent.manifest_digest
        assert verify_target(done.result.run.path, Request(integrity_only=True)).exit_code == 0
        assert fingerprint(walked[1]) == before

    def test_a_fork_from_a_checkpoint_goes_on_where_the_state_was_saved(self, tmp_path: Path) -> None:
        walked = keep(tmp_path, self.engine)
        assert {saved.trigger for saved in read_checkpoints(walked[2]).values()} >= {"every_steps"}
        done = fork(walked, "step:4", {"word": "new"})
        again, record = only_trial(done.result.run)
        assert record.outcome == "success", again.stderr.read_text()
        lines = document(again.trial_output)["answer"].split()
        assert lines == ["0:old", "1:old", "2:old", "3:old", "4:new", "5:new"]
        restored = document(again.trial_input)["ext"]["fork"]["restored"]
        assert restored["step_index"] < 4
        first = again.harness_events.read_text().splitlines()[1]
        assert f'"step_index":{restored["step_index"] + 1}' in first.replace(": ", ":")

    def test_a_checkpoint_asked_for_by_hand_keeps_memory_random_state_and_budgets(self, tmp_path: Path) -> None:
        write_sdk_experiment(tmp_path, self.engine, REMEMBERS, {"x": 1}, level="sdk_control", budgets={"max_steps": 99})
        lab = LabFolder(tmp_path / ".lab")

        def ask() -> None:
            assert until(lambda: lab.run_ids() and list(running_trials(lab, lab.run_ids()[0])), 30)
            codes.append(invoke(["control", "latest", "checkpoint", "--label", "mine", "--lab-dir", str(lab.path)]))

        codes: list[int] = []
        asking = threading.Thread(target=ask)
        asking.start()
        _, parent, trial = run_one(tmp_path)
        asking.join()
        assert (codes, document(trial.trial_output)["answer"]) == ([0], "mine")
        saved = read_checkpoints(trial)["mine"]
        assert (saved.trigger, saved.restorable) == ("control", True)
        assert saved.memory_ref is not None
        assert saved.rng_ref is not None
        thrown = int(parent.artifacts.get(saved.memory_ref))
        random.seed(7)
        for _ in range(thrown):
            random.random()
        assert parent.artifacts.get(saved.rng_ref).decode() == repr(random.getstate())
        assert (saved.step_index, saved.to_json()["budgets"]["steps"]) == (thrown - 1, thrown)
