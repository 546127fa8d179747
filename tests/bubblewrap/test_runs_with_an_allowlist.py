"""Whole runs with an allowlist: the self-test comes first, and what it found decides what the run may claim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from labaudit.engines.checks import egress_test
from labaudit.network.self_test.host_canary import HostCanary
from labaudit.pipeline.run import RunResult
from tests.experiments import document, only_trial, run, write_experiment

pytestmark = pytest.mark.bubblewrap


class DeadCanary(HostCanary):
    """Nobody answers, so that nothing can be concluded from silence."""

    def __init__(self) -> None:
        super().__init__()
        self.close()


def listed(folder: Path, *, strict: bool) -> tuple[RunResult, dict[str, Any]]:
    """A run of one trial with an allowlist, and the inventory of that trial."""
    write_experiment(
        folder,
        variants=(),
        tasks=[{"id": "t", "name": "x", "expected": "Hello x"}],
        design={"fail_on_profile_invariant_violation": strict, "sanitization_profile": "hermetic_functional_v2"},
        runtime={"engine": "bubblewrap", "network": {"mode": "allowlist_enforced", "allowed_hosts": ["a.example"]}},
    )
    result = run(folder)
    trial, record = only_trial(result.run)
    assert record.outcome == "success", trial.stderr.read_text()
    inventory: dict[str, Any] = document(trial.state_inventory)
    return result, inventory


def test_a_passed_self_test_is_in_the_inventory_and_in_the_artifacts(tmp_path: Path) -> None:
    result, inventory = listed(tmp_path, strict=True)
    assert not result.invalid
    found = inventory["network"]
    assert (found["mode_effective"], found["enforcement_effective"]) == ("allowlist_enforced", "unix_socket_proxy")
    assert found["bypass_risk"] == "residual"
    assert found["egress_self_test"]["performed"] is True
    assert all(case["ok"] for case in found["egress_self_test"]["cases"])
    assert inventory["violations"] == {"state_leak": False, "profile_invariant_violation": False, "notes": []}
    assert result.run.artifacts.get(inventory["ext"]["network"]["self_test"]).startswith(b"{")
    assert result.grades.isolation.value != "leaky"


@pytest.mark.parametrize("strict", [True, False])
def test_an_inconclusive_self_test_invalidates_the_run_or_lowers_its_grade(
    strict: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(egress_test, "HostCanary", DeadCanary)
    result, inventory = listed(tmp_path, strict=strict)
    assert bool(result.invalid) is strict
    assert "the egress self-test did not pass" in inventory["violations"]["notes"]
    assert result.grades.isolation.value in ("bounded", "leaky")
