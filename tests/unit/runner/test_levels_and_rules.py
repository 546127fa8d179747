"""What the seed says about manifests, hook streams, control and allowlists, in strict and non-strict form."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from labaudit import resources
from tests.experiments import document, only_trial, run, trials, write_experiment

SUMS = (resources.experiment_dir("demo") / "harness" / "agent.py").read_text()
TASK = ({"id": "t", "question": "2 + 3", "expected": 5},)
BINDINGS = {"baseline": {"id": "base", "bindings": {"strategy": "calculator", "check": True}}}


def _hooked(folder: Path, agent: str, **top: object) -> Path:
    harness = {"integration_level": "cli_events"}
    evaluators = [{"id": "exact", "type": "numeric"}]
    return write_experiment(
        folder, agent=agent, tasks=TASK, variants=(), harness=harness, evaluators=evaluators, **{**BINDINGS, **top}
    )


def test_hooks_lift_the_level_to_cli_events_and_count_turns(tmp_path: Path) -> None:
    _hooked(tmp_path, SUMS)
    result = run(tmp_path)
    assert result.invalid == ()
    trial, record = only_trial(result.run)
    assert record.outcome == "success"
    assert document(trial.state_inventory)["integration_level"] == "cli_events"
    assert result.grades.integration_level.observed == "cli_events"
    assert result.grades.interpretability.value == "step"
    assert result.grades.replay.value == "best_effort"


BROKEN = {
    "no control_ack": SUMS.replace('        self.emit("control_ack"', '        0 and self.emit("control_ack"'),
    "an ack for what nobody wrote": SUMS.replace("hashlib.sha256(data).hexdigest()", '"0" * 64'),
    "events of another trial": SUMS.replace('self.ids = given["ids"]', 'self.ids = dict(given["ids"], trial_id="x")'),
    "seq that goes back": SUMS.replace("self.seq += 1", "self.seq = 0"),
    "a header that says another level": SUMS.replace(
        "    answer, tokens = solve(given, Hooks(given))",
        "    hooks = Hooks(given)\n"
        '    hooks.emit("hooks.header", hooks_schema_version="hook_events_v1", step_semantics="other",'
        ' integration_level="cli_events")\n'
        "    answer, tokens = solve(given, hooks)",
    ),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_a_broken_stream_is_kept_marked_and_not_counted(name: str, tmp_path: Path) -> None:
    assert BROKEN[name] != SUMS
    _hooked(tmp_path, BROKEN[name])
    result = run(tmp_path)
    trial, record = only_trial(result.run)
    assert record.outcome == "success"
    assert trial.harness_events.is_file()
    assert result.grades.integration_level.observed == "cli_basic"
    assert result.grades.interpretability.value == "output"


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_in_a_strict_profile_a_broken_stream_fails_the_trial(name: str, tmp_path: Path) -> None:
    _hooked(tmp_path, BROKEN[name], design={"sanitization_profile": "replay_strict_v2"})
    _, record = only_trial(run(tmp_path).run)
    assert record.outcome == "error"


NO_MANIFEST = SUMS.replace('"harness_manifest.json"', '"something_else.json"')


def test_a_missing_manifest_is_a_hard_failure_unless_allowed(tmp_path: Path) -> None:
    _hooked(tmp_path, NO_MANIFEST)
    result = run(tmp_path)
    assert "X1" in result.invalid[0]
    assert only_trial(result.run)[1].outcome == "error"
    assert result.inclusion.totals.excluded == 1


def test_with_leave_a_missing_manifest_lowers_the_level_to_cli_basic(tmp_path: Path) -> None:
    _hooked(tmp_path, NO_MANIFEST)
    result = run(tmp_path, allow_missing_harness_manifest=True)
    assert result.invalid == ()
    assert only_trial(result.run)[1].outcome == "success"
    assert result.grades.integration_level.observed == "cli_basic"


def test_a_manifest_cannot_claim_more_than_was_seen(tmp_path: Path) -> None:
    _hooked(tmp_path, SUMS.replace('"integration_level": "cli_events"', '"integration_level": "sdk_full"'))
    result = run(tmp_path)
    assert result.grades.integration_level.claimed == "sdk_full"
    assert result.grades.integration_level.observed in {"cli_events", "sdk_control"}
    assert result.grades.replay.value != "strict"


@pytest.mark.parametrize("strict", [True, False])
def test_an_allowlist_that_nothing_enforces_is_leaky_or_invalid(strict: bool, tmp_path: Path) -> None:
    write_experiment(
        tmp_path,
        variants=(),
        design={"fail_on_profile_invariant_violation": strict},
        runtime={"network": {"mode": "allowlist_enforced", "allowed_hosts": ["api.example.com:443"]}},
    )
    result = run(tmp_path)
    assert result.grades.isolation.value == "leaky"
    assert bool(result.invalid) is strict
    inventory = document(trials(result.run)[0][0].state_inventory)
    assert inventory["network"]["mode_requested"] == "allowlist_enforced"
    assert inventory["network"]["mode_effective"] == "full"
    assert inventory["network"]["egress_self_test"] == {"performed": False, "cases": []}
    assert inventory["violations"]["profile_invariant_violation"] is True


def test_a_spent_budget_stops_the_harness_at_a_step_end(tmp_path: Path) -> None:
    endless = SUMS.replace("    answer, tokens = solve(given, Hooks(given))", (
        "    import time\n"
        "    hooks, answer, tokens = Hooks(given), None, 0\n"
        "    for _ in range(200):\n"
        "        hooks.begin()\n"
        "        time.sleep(0.05)\n"
        "        if hooks.end():\n"
        "            answer = 5\n"
        "            break\n"
    ))
    _hooked(tmp_path, endless, runtime={"budgets": {"max_steps": 3}})
    result = run(tmp_path)
    trial, record = only_trial(result.run)
    assert record.outcome == "success"
    assert '"stop"' in trial.control_log.read_text()
    assert trial.harness_events.read_text().count("agent_step_end") < 50
    shutil.rmtree(tmp_path / ".lab")
