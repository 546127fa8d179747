"""A run from experiment.yaml to its seal, on the process engine: every file is there, valid, and verified."""

from __future__ import annotations

from pathlib import Path

import pytest

from labaudit.attest.keys import PublicKey
from labaudit.records.schema_registry import validate
from labaudit.store.lab_folder import LabFolder
from labaudit.verify.request import Anchors, Request
from labaudit.verify.targets import verify_target
from tests.experiments import ECHO, document, run, trials, write_experiment

SCHEMAS = {
    "trial_input.json": "trial_input_v1",
    "trial_output.json": "trial_output_v1",
    "metrics.json": "metrics_v1",
    "grades.json": "grades_v1",
    "state_inventory.json": "state_inventory_v1",
    "trial_record.json": "trial_record_v1",
    "run_record.json": "run_record_v1",
}


def test_a_run_leaves_every_file_of_the_layout_valid_against_its_schema(tmp_path: Path) -> None:
    write_experiment(tmp_path, design={"replications": 2})
    result = run(tmp_path, sign=True)
    folder = result.run
    assert result.inclusion.totals.to_json() == {"scheduled": 8, "included": 8, "excluded": 0, "lost": 0}
    assert validate("resolved_experiment_v0_3", document(folder.resolved)) == []
    assert validate("manifest_v1", document(folder.manifest)) == []
    assert validate("attestation_v1", document(folder.attestation)) == []
    assert validate("grades_v1", document(folder.grades)) == []
    for trial, _ in trials(folder):
        for name, schema in SCHEMAS.items():
            assert validate(schema, document(trial.path / name)) == [], (trial.path, name)
        for name in ("events.jsonl", "events.head", "network_events.jsonl", "score_records.jsonl", "stdout.log"):
            assert (trial.path / name).is_file(), name
    assert not (tmp_path / ".lab" / "live").exists()


def test_a_signed_run_verifies_with_its_key_and_fails_with_another(tmp_path: Path) -> None:
    write_experiment(tmp_path)
    result = run(tmp_path, sign=True)
    own = PublicKey.load(tmp_path / ".lab" / "keys" / "labaudit.pub")
    assert verify_target(result.run.path, Request(anchors=Anchors(keys=(own,)))).exit_code == 0
    other = LabFolder(tmp_path / "other")
    from labaudit.attest.trust_store import ensure_keys

    stranger = ensure_keys(other).signing.public
    assert verify_target(result.run.path, Request(anchors=Anchors(keys=(stranger,)))).exit_code != 0


def test_the_registry_names_the_plan_before_the_first_trial(tmp_path: Path) -> None:
    write_experiment(tmp_path)
    result = run(tmp_path)
    line = document(tmp_path / ".lab" / "registry.jsonl")
    first = min(record.started_at or "" for _, record in trials(result.run))
    assert line["resolved_digest"] == result.run.resolved_digest.read_text()
    assert line["registered_at"] < first


def test_the_metric_comes_from_the_evaluator_and_not_from_the_harness(tmp_path: Path) -> None:
    write_experiment(tmp_path)
    result = run(tmp_path)
    for trial, record in trials(result.run):
        metrics = document(trial.metrics)
        assert metrics["metrics"]["success"] is (record.ids.variant_id == "base")
        assert metrics["sources"]["success"] == "evaluator:exact"


def test_without_an_evaluator_success_is_the_harnesss_own_word_and_labelled_so(tmp_path: Path) -> None:
    write_experiment(tmp_path, evaluators=[])
    result = run(tmp_path)
    metrics = document(trials(result.run)[0][0].metrics)
    assert metrics["metrics"]["success"] is True
    assert "success" in metrics["self_reported"]
    assert result.grades.comparability.value != "paired"


def test_two_runs_of_one_experiment_have_one_resolved_digest_and_one_schedule(tmp_path: Path) -> None:
    write_experiment(tmp_path)
    first, second = run(tmp_path), run(tmp_path)
    assert first.run.path != second.run.path
    assert first.run.resolved.read_bytes() == second.run.resolved.read_bytes()
    assert first.run.schedule.read_bytes() == second.run.schedule.read_bytes()


def test_an_edit_of_the_harness_during_the_run_changes_no_trial(tmp_path: Path) -> None:
    spoil = ECHO + f"\nopen({str(tmp_path / 'harness' / 'agent.py')!r}, 'w').write('raise SystemExit(3)')\n"
    write_experiment(tmp_path, agent=spoil)
    result = run(tmp_path, workers=1)
    assert [record.outcome for _, record in trials(result.run)] == ["success"] * 4


def test_a_secret_never_reaches_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_API_KEY", "sk-very-secret-value-123")
    leak = ECHO + (
        'print("key", os.environ["MODEL_API_KEY"])\n'
        'open(out + "/notes.txt", "w").write(os.environ["MODEL_API_KEY"])\n'
    )
    write_experiment(tmp_path, agent=leak, harness={"secrets": ["MODEL_API_KEY"]})
    result = run(tmp_path)
    for path in result.run.path.rglob("*"):
        if path.is_file():
            assert b"sk-very-secret-value-123" not in path.read_bytes(), path
    assert "withheld" in trials(result.run)[0][0].stdout.read_text()


def test_a_declared_secret_that_is_not_set_stops_the_run_before_any_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from labaudit.errors import EnvironmentLacks

    monkeypatch.delenv("MODEL_API_KEY", raising=False)
    write_experiment(tmp_path, harness={"secrets": ["MODEL_API_KEY"]})
    with pytest.raises(EnvironmentLacks, match="MODEL_API_KEY"):
        run(tmp_path)
    assert list(tmp_path.glob(".lab/runs/*")) == []


def test_a_command_evaluator_judges_from_its_own_sandbox(tmp_path: Path) -> None:
    judge = (
        "import json, os\n"
        'given = json.load(open(os.environ["LABAUDIT_EVALUATION_INPUT"]))\n'
        'right = given["trial_output"]["answer"] == given["task"]["expected"]\n'
        'print(json.dumps({"metrics": {"success": right, "length": len(given["trial_output"]["answer"])}}))\n'
    )
    write_experiment(
        tmp_path,
        evaluators=[{"id": "judge", "type": "command", "command": ["python3", "/harness/judge.py"], "source": "judge"}],
        metrics=[
            {"name": "success", "type": "binary", "source": "evaluator:judge"},
            {"name": "length", "source": "evaluator:judge"},
        ],
    )
    (tmp_path / "judge").mkdir()
    (tmp_path / "judge" / "judge.py").write_text(judge)
    result = run(tmp_path)
    by_variant = {record.ids.variant_id: document(trial.metrics) for trial, record in trials(result.run)}
    assert by_variant["base"]["metrics"] == {"success": True, "length": 9}
    assert by_variant["v0"]["metrics"]["success"] is False
