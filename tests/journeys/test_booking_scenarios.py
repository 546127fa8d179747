"""The multi-turn booking scenarios of the example, all the way: run in a sandbox, checked, verified."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]


def labaudit(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "labaudit", *arguments]
    return subprocess.run(command, cwd=TOP, capture_output=True, text=True, timeout=240, check=False)


def run_example(tmp_path: Path, experiment: str, engine: str) -> Path:
    example = tmp_path / "booking"
    shutil.copytree(
        TOP / "examples" / "booking", example, ignore=shutil.ignore_patterns("contracts_kit", "__pycache__")
    )
    assert labaudit("contract", "kit", str(example / "harness")).returncode == 0
    lab = tmp_path / "lab"
    done = labaudit("run", str(example / experiment), "--engine", engine, "--lab-dir", str(lab), "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["grades"]["integration_level"] == "cli_events"
    assert document["totals"]["lost"] == 0
    return Path(document["path"])


def check_records(run: Path) -> dict[str, int]:
    checked = labaudit("contract", "check", str(run), "--json")
    report = json.loads(checked.stdout)
    assert (checked.returncode, report["errors"], report["warnings"]) == (0, 0, 0), report["findings"][:3]
    return report["records"]  # type: ignore[no-any-return]


@pytest.mark.bubblewrap
def test_scenarios_run_in_a_sandbox_and_their_records_pass_the_contract_check(tmp_path: Path) -> None:
    run = run_example(tmp_path, "experiment.yaml", "bubblewrap")
    records = check_records(run)
    assert (records["run"], records["scenario"]) == (18, 18)
    scores = [json.loads(line) for path in run.glob("trials/*/score_records.jsonl") for line in path.open()]
    assert {"final", "global", "step:step-1", "step:step-2"} <= {score["target"] for score in scores}
    comparisons = json.loads((run / "analysis" / "comparisons.json").read_text())["comparisons"]
    primary = next(item for item in comparisons if item["metric"] == "success")
    assert primary["estimate"] < 0, "a stricter threshold costs dialogues in this dataset"
    verified = labaudit("verify", str(run), "--key", str(tmp_path / "lab" / "keys" / "labaudit.pub"))
    assert verified.returncode == 0, verified.stdout


def test_atomic_tasks_run_by_the_same_harness(tmp_path: Path) -> None:
    run = run_example(tmp_path, "intents.yaml", "process")
    records = check_records(run)
    assert records["run"] == records["task"] == 5
