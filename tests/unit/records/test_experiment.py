"""experiment.yaml as a record: the documented example, its defaults, and what it refuses."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from labaudit.records.authored import filled_defaults
from labaudit.records.experiment import Experiment

FULL = """
version: "0.3"
experiment: {id: greet, name: Greeting agent, description: says hello, tags: [demo]}
dataset: {path: tasks.jsonl, id_field: id, limit: 20}
design:
  sanitization_profile: hermetic_functional_v2
  replications: 2
  seed: 20261118
  shuffle_tasks: true
  randomize_variant_order: true
  block_by_task: true
  fail_on_profile_invariant_violation: true
  retries: {infra: 1}
baseline: {id: base, bindings: {greeting: Hello}}
variant_plan:
  - {id: drop_10p, bindings: {greeting: Hi}}
runtime:
  engine: auto
  image: labaudit-demo
  harness:
    mode: cli
    command: [python3, /harness/agent.py]
    source: harness/
    lockfile: harness/requirements.txt
    integration_level: cli_events
    control_plane: {mode: file, path: /state/lab_control.json}
    tracing: {mode: none}
    env: {LANG: C.UTF-8}
    secrets: [MODEL_API_KEY]
  network: {mode: none, allowed_hosts: []}
  budgets: {max_steps: 20, max_total_tokens: 20000, max_tool_calls: 50}
  timeouts: {trial_seconds: 60}
  resources: {memory_mb: 512, cpus: 1.0, pids: 128, out_mb: 64, workspace_mb: 256}
  checkpoints: {every_steps: 5, at_end: true}
evaluators:
  - {id: exact, type: exact_match, expected: expected, metric: success}
metrics:
  - {name: success, type: binary, direction: higher, source: "evaluator:exact"}
  - {name: cost_usd, type: continuous, direction: lower, source: harness, worst: 1.0}
analysis_plan:
  primary: [success]
  secondary: [cost_usd]
  missingness: paired_drop
  ci: {method: auto, level: 0.95, resamples: 10000}
  correction: {primary: holm, secondary: bh}
redaction: {rules: [{pattern: "sk-[A-Za-z0-9]{8,}", mode: hash}]}
provenance: {sbom: optional, sign: true}
"""

SMALL = """
version: "0.3"
experiment: {id: greet}
dataset: {path: tasks.jsonl}
baseline: {id: base}
runtime: {harness: {command: [python3, agent.py]}}
"""


def full() -> Any:
    return yaml.safe_load(FULL)


def with_value(path: str, value: Any) -> Any:
    document = copy.deepcopy(full())
    place = document
    *parents, last = path.split(".")
    for key in parents:
        place = place.setdefault(key, {}) if isinstance(place, dict) else place[int(key)]
    place[int(last) if isinstance(place, list) else last] = value
    return document


def test_the_documented_example_is_an_experiment() -> None:
    experiment = Experiment.model_validate(full())
    assert [variant.id for variant in experiment.variants] == ["base", "drop_10p"]
    assert experiment.runtime.harness.command == ("python3", "/harness/agent.py")
    assert experiment.analysis_plan.estimand == "tasks_like_these"


def test_what_is_required_is_enough() -> None:
    experiment = Experiment.model_validate(yaml.safe_load(SMALL))
    assert experiment.runtime.network.mode == "none"
    assert experiment.design.fail_on_profile_invariant_violation is False
    assert experiment.runtime.harness.control_plane.path == "/state/lab_control.json"
    assert experiment.variant_plan == ()


@pytest.mark.parametrize(
    "path",
    [
        "version",
        "experiment.id",
        "dataset.path",
        "baseline",
        "runtime.harness.command",
        "runtime.harness",
        "experiment",
    ],
)
def test_what_is_required_is_missed(path: str) -> None:
    document = yaml.safe_load(SMALL)
    place = document
    *parents, last = path.split(".")
    for key in parents:
        place = place[key]
    del place[last]
    with pytest.raises(ValidationError, match="Field required"):
        Experiment.model_validate(document)


@pytest.mark.parametrize(
    "path",
    ["bogus", "experiment.bogus", "design.retries.bogus", "runtime.bogus", "runtime.harness.bogus", "metrics.0.bogus"],
)
def test_an_unknown_key_is_refused_at_every_depth(path: str) -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        Experiment.model_validate(with_value(path, 1))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("version", "0.4"),
        ("version", 0.4),
        ("design.replications", 0),
        ("design.replications", True),
        ("design.replications", "2"),
        ("design.seed", -1),
        ("design.sanitization_profile", "lax"),
        ("baseline.id", "a/b"),
        ("baseline.id", "a\n"),
        ("runtime.engine", "podman"),
        ("runtime.harness.command", []),
        ("runtime.harness.command", "python3 agent.py"),
        ("runtime.harness.secrets", ["A=B"]),
        ("runtime.harness.env", {"PORT": 8080}),
        ("runtime.harness.prompt", "{task.prompt}"),
        ("runtime.harness.control_plane", {"mode": "file", "path": None}),
        ("runtime.network.mode", "open"),
        ("runtime.resources.cpus", 0),
        ("runtime.resources.cpus", float("nan")),
        ("runtime.timeouts.trial_seconds", 0),
        ("analysis_plan.ci.level", 1),
        ("evaluators.0.command", ["x"]),
        ("evaluators.0.type", "command"),
        ("evaluators.0.abs_tolerance", 0.1),
        ("metrics.0.source", "evaluator:"),
        ("metrics.0.effect", "odds"),
        ("provenance.sbom", True),
        ("redaction.rules", [{"pattern": ""}]),
    ],
)
def test_a_wrong_value_is_refused(path: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        Experiment.model_validate(with_value(path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("dataset.task_schema", "greeting"),
        ("dataset.limit", None),
        ("runtime.cache", "cache/"),
        (
            "runtime.network",
            {"mode": "allowlist_enforced", "allowed_hosts": ["a:443"], "allowed_networks": ["10.0.0.0/8"]},
        ),
        ("runtime.network.enforcement", "unix_socket_proxy"),
        ("runtime.timeouts.tool_seconds", 5),
        ("runtime.resources.cpus", 2),
        ("metrics.1.effect", "log_ratio"),
        ("analysis_plan.estimand", "this_task_set"),
        ("analysis_plan.cluster", "repo"),
        ("executor.trusted_workers", ["SHA256:abc"]),
        ("evaluators.0", {"id": "judge", "type": "command", "command": ["python3", "judge.py"], "source": "judge/"}),
        ("evaluators.0", {"id": "near", "type": "numeric", "expected": "n", "abs_tolerance": 0.01}),
    ],
)
def test_the_keys_that_are_also_there_are_accepted(path: str, value: Any) -> None:
    Experiment.model_validate(with_value(path, value))


def test_an_acp_harness_has_its_own_keys() -> None:
    harness = {
        "mode": "acp",
        "command": ["agent", "--acp"],
        "prompt": "{task.prompt}",
        "permissions": {"allow_once": ["read"]},
        "mode_id": "code",
        "model": "m",
        "mcp_servers": [{"name": "files", "command": "mcp-files", "args": ["."]}],
        "dialect": "kiro",
    }
    assert Experiment.model_validate(with_value("runtime.harness", harness)).runtime.harness.dialect == "kiro"
    denied = Experiment.model_validate(with_value("runtime.harness", {**harness, "permissions": "deny_all"}))
    assert denied.runtime.harness.permissions == "deny_all"
    with pytest.raises(ValidationError):
        Experiment.model_validate(with_value("runtime.harness", {**harness, "permissions": "allow_always"}))


def test_yaml_that_reads_off_as_false_and_a_version_as_a_number_is_understood() -> None:
    document = yaml.safe_load(FULL.replace('"0.3"', "0.3").replace("sbom: optional", "sbom: off"))
    assert document["version"] == 0.3
    assert document["provenance"]["sbom"] is False
    experiment = Experiment.model_validate(document)
    assert (experiment.version, experiment.provenance.sbom) == ("0.3", "off")


def test_every_filled_default_is_listed_with_its_reason_and_nothing_else_is() -> None:
    filled = {item.path: item for item in filled_defaults(Experiment.model_validate(yaml.safe_load(SMALL)))}
    assert filled["runtime.resources.pids"].value == 128
    assert filled["runtime.network.mode"].reason == "no network unless asked for"
    assert filled["baseline.bindings"].value == {}
    assert "runtime.harness.command" not in filled
    assert all(item.reason and item.reason != "the documented default" for item in filled.values())
    written = {item.path for item in filled_defaults(Experiment.model_validate(full()))}
    assert "design.seed" not in written
    assert "analysis_plan.estimand" in written


def test_a_default_inside_a_list_is_listed_by_its_place() -> None:
    document = with_value("metrics.0", {"name": "success", "type": "binary"})
    assert "metrics[0].direction" in {item.path for item in filled_defaults(Experiment.model_validate(document))}


def test_an_experiment_cannot_be_changed_after_it_was_read() -> None:
    experiment = Experiment.model_validate(full())
    with pytest.raises(ValidationError):
        experiment.design.seed = 1  # type: ignore[misc]
