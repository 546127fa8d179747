"""Replays and forks without a sandbox, and everything that is refused before anything runs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from labaudit.cli import invoke
from labaudit.core.canonical import canonical_bytes
from labaudit.core.digest import Digest
from labaudit.errors import BadInput, Contradiction, PolicyUnmet
from labaudit.runner.checkpoints.checkpoint import read_checkpoints
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import TrialFolder
from tests.experiments import document, only_trial, run, write_experiment
from tests.relive_contract import ReliveContract, Walked, fork, keep, replay, walk


class TestOnTheProcessEngine(ReliveContract):
    engine = "process"


@pytest.mark.parametrize("rechained", [False, True])
def test_an_altered_boundary_is_found_at_its_place(rechained: bool, tmp_path: Path) -> None:
    walked = walk(tmp_path)
    trial = walked[2]
    lines = trial.boundaries.read_bytes().splitlines()
    value = json.loads(lines[4])
    value["response"] = {"at": 99}
    if rechained:
        value.pop("self")
        body = json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
        value["self"] = hashlib.sha256(body).hexdigest()
    lines[4] = json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
    trial.boundaries.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(Contradiction, match=f"boundary {5 if rechained else 4}"):
        replay(walked, strict=True)


def _alter(trial: TrialFolder, number: int, request: dict[str, object]) -> None:
    """Another request in the record, with every digest and link after it made to fit, and the trial's record too."""
    lines, prev = [], None
    for index, line in enumerate(trial.boundaries.read_bytes().splitlines()):
        value = json.loads(line)
        value.pop("self")
        if index == number:
            value |= {"request": request, "request_digest": str(Digest.of(canonical_bytes(request)))}
        value["prev"] = prev or value["prev"]
        prev = Digest.of(canonical_bytes(value)).hex
        lines.append(canonical_bytes({**value, "self": prev}) + b"\n")
    trial.boundaries.write_bytes(b"".join(lines))
    _list_again(trial, Path(trial.boundaries.name), b"".join(lines))


def _list_again(trial: TrialFolder, path: Path, data: bytes) -> None:
    """The trial's record with another content of one file."""
    record = document(trial.trial_record)
    for entry in record["files"]:
        if entry["path"] == str(path):
            entry |= {"sha256": Digest.of(data).hex, "size": len(data)}
    trial.trial_record.write_bytes(canonical_bytes(record))


def test_a_record_that_was_altered_throughout_fails_at_the_altered_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, parent, trial = walk(tmp_path)
    assert json.loads(trial.boundaries.read_bytes().splitlines()[4])["name"] == "move"
    _alter(trial, 4, {"from": 2, "stride": 7})
    capsys.readouterr()
    words = ["replay", f"{parent.run_id}/{trial.trial_id}", "--strict", "--no-sign", "--json", "--quiet"]
    assert invoke([*words, "--lab-dir", str(tmp_path / ".lab")]) == 1
    first = json.loads(capsys.readouterr().out)["divergences"][0]
    assert (first["what"], first["position"], first["step_index"]) == ("boundary", 4, 2)


@pytest.mark.parametrize("name", ["trial_input.json", "dataset"])
def test_an_input_that_was_altered_is_named_and_nothing_runs(name: str, tmp_path: Path) -> None:
    walked = walk(tmp_path)
    lab, parent, trial = walked
    reference = document(parent.resolved)["dataset"]["artifact_ref"]
    path = trial.trial_input if name == "trial_input.json" else parent.artifacts.path(reference)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"6", b"7"))
    with pytest.raises(Contradiction) as caught:
        replay(walked, strict=True)
    assert caught.value.exit_code == 1
    assert name in str(caught.value) or reference.rpartition("/")[2] in str(caught.value)
    assert lab.run_ids() == [parent.run_id]
    assert not lab.lineage.exists()


def test_an_input_that_was_altered_throughout_is_a_divergence_from_what_the_plan_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, parent, trial = walk(tmp_path)
    given = document(trial.trial_input)
    given["bindings"]["stride"], given["task"]["expected"] = 7, "42"
    data = canonical_bytes(given)
    trial.trial_input.write_bytes(data)
    _list_again(trial, Path(trial.trial_input.name), data)
    capsys.readouterr()
    words = ["replay", f"{parent.run_id}/{trial.trial_id}", "--strict", "--no-sign", "--json", "--quiet"]
    assert invoke([*words, "--lab-dir", str(tmp_path / ".lab")]) == 1
    found = json.loads(capsys.readouterr().out)["divergences"]
    assert [(item["what"], item["sentence"]) for item in found] == [
        ("input", "bindings of the input differs"), ("input", "task.expected of the input differs")
    ]  # fmt: skip


@pytest.mark.parametrize("damage", ["archive", "another trial's"])
def test_a_fork_from_a_damaged_checkpoint_is_refused_and_nothing_runs(damage: str, tmp_path: Path) -> None:
    walked = keep(tmp_path, "process")
    lab, parent, trial = walked
    label, saved = next(iter(read_checkpoints(trial).items()))
    if damage == "archive":
        assert saved.surfaces[0].archive_ref is not None
        path = parent.artifacts.path(saved.surfaces[0].archive_ref)
        changed = path.read_bytes().replace(b"0:old", b"0:new")
    else:
        path = trial.checkpoint(label)
        changed = path.read_bytes().replace(trial.trial_id.encode(), b"base.t.r0-00000000")
        _list_again(trial, path.relative_to(trial.path), changed)
    path.chmod(0o644)
    path.write_bytes(changed)
    with pytest.raises(Contradiction, match=r"is not what checkpoint|do not match its name|another trial"):
        fork(walked, f"checkpoint:{label}", {"word": "new"})
    assert lab.run_ids() == [parent.run_id]


def test_relatives_are_shown_in_both_directions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    walked = walk(tmp_path)
    lab, parent, trial = walked
    children = [replay(walked).result.run.run_id, fork(walked, "step:3", {"stride": 10}).result.run.run_id]
    capsys.readouterr()

    def shown(run_id: str, *more: str) -> str:
        assert invoke(["status", run_id, "--lab-dir", str(lab.path), *more]) == 0
        return capsys.readouterr().out

    text = shown(parent.run_id)
    assert f"{trial.trial_id} replayed as run {children[0]}" in text
    assert f"{trial.trial_id} forked as run {children[1]} at step:3 with stride=10" in text
    assert f"fork of {parent.run_id}/{trial.trial_id} at step:3 with stride=10" in shown(children[1])
    [row] = json.loads(shown(children[0], "--json"))
    assert (row["parent"]["run_id"], row["parent"]["kind"], row["children"]) == (parent.run_id, "replay", [])
    assert row["parent"]["manifest_digest"].startswith("sha256:")


def test_a_strict_replay_needs_a_record_of_boundaries(tmp_path: Path) -> None:
    write_experiment(tmp_path, variants=(), tasks=[{"id": "t", "name": "x", "expected": "x"}])
    result = run(tmp_path)
    trial, _ = only_trial(result.run)
    with pytest.raises(PolicyUnmet, match="cli_basic"):
        replay((LabFolder(tmp_path / ".lab"), result.run, trial), strict=True)


def test_a_basic_trial_is_executed_again_and_its_outputs_compared(tmp_path: Path) -> None:
    agent = (
        "import json, os, random\n"
        'given = json.load(open(os.environ["LABAUDIT_TRIAL_INPUT"]))\n'
        'out = given["runtime"]["paths"]["out"]\n'
        'open(out + "/same.txt", "w").write("same")\n'
        'open(out + "/other.txt", "w").write(str(random.random()))\n'
        'json.dump({"schema_version": "trial_output_v1", "ids": given["ids"], "outcome": "success", "answer": 1},'
        ' open(out + "/trial_output.json", "w"))\n'
    )
    write_experiment(tmp_path, agent=agent, variants=(), tasks=[{"id": "t", "expected": 1}])
    result = run(tmp_path)
    trial, _ = only_trial(result.run)
    done = replay((LabFolder(tmp_path / ".lab"), result.run, trial))
    assert done.mode == "outputs"
    assert [item.sentence for item in done.comparison.listed] == ["output file other.txt differs"]


def test_a_nondeterministic_stream_shows_its_first_divergent_step(tmp_path: Path) -> None:
    from tests.unit.runner.test_levels_and_rules import SUMS

    agent = SUMS.replace('"tokens_out": tokens_out}', '"tokens_out": int.from_bytes(os.urandom(3), "big")}')
    write_experiment(
        tmp_path,
        agent=agent,
        variants=(),
        tasks=[{"id": "t", "question": "2 + 3", "expected": 5}],
        baseline={"id": "base", "bindings": {"strategy": "calculator", "check": False}},
        harness={"integration_level": "cli_events"},
        evaluators=[{"id": "exact", "type": "numeric"}],
    )
    result = run(tmp_path)
    trial, _ = only_trial(result.run)
    done = replay((LabFolder(tmp_path / ".lab"), result.run, trial))
    first = done.comparison.listed[0]
    assert (done.mode, first.what, first.step_index) == ("steps", "event", 0)
    assert "model_call_end" in first.sentence
    assert first.expected != first.observed


@pytest.mark.parametrize(
    ("selector", "changed", "said"),
    [
        ("step:6", {"stride": 2}, "past the end"),
        ("seq:999", {"stride": 2}, "past the end"),
        ("checkpoint:none", {"stride": 2}, "no checkpoint"),
        ("later", {"stride": 2}, "no selector"),
        ("step:1", {"strid": 2}, "no binding 'strid'"),
        ("step:1", {"stride": 1}, "changes nothing"),
    ],
)
def test_a_fork_that_makes_no_sense_is_refused(
    selector: str, changed: dict[str, object], said: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    walked = _shared(tmp_path_factory)
    with pytest.raises(BadInput, match=said):
        fork(walked, selector, changed)
    assert len(walked[0].run_ids()) == 1


def _shared(factory: pytest.TempPathFactory) -> Walked:
    if not hasattr(_shared, "made"):
        _shared.made = walk(factory.mktemp("walk"))  # type: ignore[attr-defined]
    found: Walked = _shared.made  # type: ignore[attr-defined]
    return found
