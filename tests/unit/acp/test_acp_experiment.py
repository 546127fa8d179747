"""ACP agents in whole experiments: run, graded, analysed, attested, verified, published."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from labaudit.attest.keys import PublicKey
from labaudit.cli import labaudit
from labaudit.contracts.file_check import check_run_folder
from labaudit.errors import BadInput
from labaudit.pipeline.run import RunRequest, RunResult, run_experiment
from labaudit.store.lab_folder import LabFolder
from labaudit.verify.request import Anchors, Request
from labaudit.verify.targets import verify_target
from tests.experiments import Quiet, write_experiment
from tests.unit.acp.official import SCHEMA, problems
from tests.unit.acp.talk import AGENT

EXAMPLE = Path(__file__).parents[3] / "examples" / "acp"


def execute(path: Path, engine: str | None = None) -> tuple[RunResult, LabFolder]:
    lab = LabFolder(path.parent / ".lab")
    return run_experiment(path, lab, RunRequest(engine=engine), Quiet()), lab


def trusting(lab: LabFolder) -> Request:
    return Request(Anchors(keys=(PublicKey.load(lab.public_key),)))


def hostile(folder: Path, behaviour: str, **harness: Any) -> Path:
    given = {
        "mode": "acp", "command": ["python3", "/harness/scripted", behaviour], "prompt": "{task.name}",
        "integration_level": "cli_events", "env": {"OUT": "/out"}, **harness,
    }  # fmt: skip
    runtime = {"timeouts": {"trial_seconds": 1 if behaviour in ("never", "ignore_cancel") else 20}}
    path = write_experiment(folder, variants=(), harness=given)
    shutil.copytree(AGENT, folder / "harness" / "scripted", ignore=shutil.ignore_patterns("__pycache__"))
    document = yaml.safe_load(path.read_text())
    document["runtime"] |= runtime
    document["dataset"]["limit"] = 1
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


@pytest.mark.bubblewrap
def test_the_example_runs_all_the_way_to_a_site(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "acp", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / "acp" / "experiment.yaml"
    document = yaml.safe_load(path.read_text())
    document["design"]["replications"] = 1
    document["dataset"]["limit"] = 4
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    result, lab = execute(path, "bubblewrap")
    run = result.run
    grades = json.loads(run.grades.read_text())
    assert grades["integration_level"]["observed"] == "cli_events"
    assert grades["replay"]["value"] == "best_effort"
    for trial in run.trial_folders():
        metrics = json.loads(trial.metrics.read_text())
        assert "turn_count" not in metrics["metrics"] or metrics["metrics"]["turn_count"] is None
        settings = json.loads(trial.trial_output.read_text())["ext"]["acp"]["settings"]
        assert settings["mode"]["accepted"] is True
        if SCHEMA.is_file():
            assert problems(trial.acp_transcript)[0] == []
    comparisons = json.loads(run.comparisons.read_text())["comparisons"]
    success = next(item for item in comparisons if item["metric"] == "success")
    assert success["estimate"] == pytest.approx(-0.75), "the shy one knows one answer of four"
    assert verify_target(run.path, trusting(lab)).verdict == "verified"
    records = check_run_folder(run)
    assert (records.errors, records.findings) == (0, []), "what the bridge reports of itself is declared"
    site = tmp_path / "site"
    built = CliRunner().invoke(labaudit, ["site", str(run.path), "--out", str(site), "--lab-dir", str(lab.path)])
    assert built.exit_code == 0, built.output
    assert verify_target(site, trusting(lab)).verdict == "verified"
    trial = next(run.trial_folders())
    trial.acp_transcript.write_bytes(trial.acp_transcript.read_bytes().replace(b"session/new", b"session/old"))
    assert verify_target(run.path, trusting(lab)).verdict == "failed"


@pytest.mark.parametrize(
    ("behaviour", "outcome"),
    [
        ("exits", "error"),
        ("fake_files", "success"),
        pytest.param("ignore_cancel", "error", marks=pytest.mark.acceptance),
        pytest.param("linger", "success", marks=pytest.mark.acceptance),
    ],
)
def test_a_badly_behaved_agent_gives_a_whole_and_verified_run(behaviour: str, outcome: str, tmp_path: Path) -> None:
    result, lab = execute(hostile(tmp_path, behaviour))
    (trial,) = result.run.trial_folders()
    assert json.loads(trial.trial_record.read_text())["outcome"] == outcome
    assert b"forged" not in trial.harness_events.read_bytes()
    assert json.loads(trial.trial_output.read_text())["ext"]["origin"] == "acp_bridge"
    assert verify_target(result.run.path, trusting(lab)).verdict == "verified"


def test_a_prompt_that_names_nothing_is_found_before_the_first_trial(tmp_path: Path) -> None:
    path = hostile(tmp_path, "echo", prompt="Greet {task.nmae}")
    with pytest.raises(BadInput, match=r"task has no 'nmae' \(task a, variant base\)") as caught:
        execute(path)
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "nmae" in text)
    assert caught.value.where == f"{path}:{line}"
    assert "name" in caught.value.hint


def test_a_secret_of_the_experiment_is_in_no_file_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-only-for-the-model-4242"
    monkeypatch.setenv("MODEL_API_KEY", secret)
    result, lab = execute(hostile(tmp_path, "secrets", secrets=["MODEL_API_KEY"]))
    files = [path for path in lab.path.rglob("*") if path.is_file()]
    assert [path for path in files if secret.encode() in path.read_bytes()] == []
    assert b"withheld" in next(result.run.trial_folders()).acp_transcript.read_bytes()
    assert verify_target(result.run.path, trusting(lab)).verdict == "verified"
