"""`labaudit demo` as a newcomer runs it: two experiments in a real sandbox, verified, tampered with, published."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from labaudit.records.schema_registry import validate
from labaudit.store.lab_folder import LabFolder
from tests.experiments import document, trials


def _labaudit(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "labaudit", *arguments], capture_output=True, text=True, timeout=280)


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.xdist_group("docker")]),
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    ],
)
def test_the_demo_goes_all_the_way(engine: str, tmp_path: Path) -> None:
    done = _labaudit("demo", "--out", str(tmp_path / "d"), "--engine", engine, "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["tampered"]["verdict"] == "failed"
    assert Path(told["site"]).is_file()
    lab = LabFolder(tmp_path / "d" / "lab")
    sums, allowlist = (lab.find_run(run_id) for run_id in told["run_ids"])
    resolved = document(sums.resolved)
    assert len(resolved["variants"]) == 3
    assert resolved["dataset"]["count"] >= 6
    assert document(sums.inclusion)["totals"]["included"] == 48
    grades = document(sums.grades)
    assert grades["isolation"]["value"] == "sealed"
    assert grades["integration_level"]["observed"] == "cli_events"
    assert document(allowlist.grades)["isolation"]["value"] == "bounded"
    mounts = {json.dumps(document(trial.state_inventory)["mounts"]) for trial, _ in trials(sums)}
    assert len(mounts) == 1, "the same sandbox is described in the same words, or arms seem to differ"
    for trial, record in trials(allowlist):
        assert record.outcome == "success"
        inventory = document(trial.state_inventory)
        assert inventory["network"]["enforcement_effective"] == "unix_socket_proxy"
        assert inventory["network"]["egress_self_test"]["performed"] is True
        decisions = {json.loads(line)["decision"] for line in trial.network_events.read_text().splitlines()}
        assert decisions == {"allow", "block"}
        assert validate("state_inventory_v1", inventory) == []


def test_the_demo_never_writes_over_a_folder(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    done = _labaudit("demo", "--out", str(tmp_path))
    assert done.returncode == 2
    assert "is there already" in done.stderr
    assert "Traceback" not in done.stderr
