"""Every numbered rule: a document that keeps it, and one that breaks it and nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labaudit.records import document_rules
from labaudit.records.document_rules import RULES, check, check_trial_output, keys_are_unique
from labaudit.records.schema_registry import schema_names

DOCUMENTS = Path(__file__).parent / "documents"
Change = Callable[[Any], Any]


def document(schema: str, case: str = "full") -> Any:
    return json.loads((DOCUMENTS / schema / f"{case}.json").read_text())


def set_at(path: str, value: Any) -> Change:
    def change(whole: Any) -> None:
        place = whole
        *parents, last = [int(key) if key.isdigit() else key for key in path.split(".")]
        for key in parents:
            place = place[key]
        place[last] = value

    return change


def drop(path: str) -> Change:
    def change(whole: Any) -> None:
        place = whole
        *parents, last = path.split(".")
        for key in parents:
            place = place[key]
        del place[last]

    return change


BREACHES: list[tuple[str, str, str, Change]] = [
    ("M1", "harness_manifest_v1", "otel", set_at("tracing.mode", "none")),
    ("M1", "harness_manifest_v1", "otel", drop("tracing.otlp_endpoint")),
    ("M1", "harness_manifest_v1", "otel", set_at("tracing", {"mode": "manifest", "otlp_endpoint": "x"})),
    ("M2", "harness_manifest_v1", "full", drop("control_plane")),
    ("M3", "harness_manifest_v1", "full", drop("harness.exec_digest")),
    ("N1", "state_inventory_v1", "full", set_at("network.allowed_hosts", [])),
    ("N1", "state_inventory_v1", "full", drop("network.allowed_hosts")),
    ("N1", "trial_input_v1", "full", set_at("runtime.network.allowed_hosts", [])),
    ("N1", "resolved_experiment_v0_3", "cli", set_at("runtime.network.mode", "allowlist_enforced")),
    ("N2", "state_inventory_v1", "full", set_at("network.enforcement_effective", "unknown")),
    ("N2", "state_inventory_v1", "full", set_at("network.enforcement_effective", "none")),
    ("N2", "state_inventory_v1", "full", set_at("network.enforcement_effective", "docker_none")),
    ("N3", "state_inventory_v1", "full", set_at("network.egress_self_test.performed", False)),
    ("N3", "state_inventory_v1", "full", lambda whole: whole["network"]["egress_self_test"]["cases"].pop()),
    ("N4", "state_inventory_v1", "full", set_at("network.egress_self_test.cases.0.ok", False)),
    ("N4", "state_inventory_v1", "full", set_at("network.egress_self_test.cases.1.observed", "error")),
    ("O1", "trial_output_v1", "full", drop("error")),
    ("O1", "trial_output_v1", "full", set_at("error", {})),
    ("O2", "trial_output_v1", "full", set_at("artifacts.0.path", "/etc/passwd")),
    ("O2", "trial_output_v1", "full", set_at("artifacts.0.path", "/out/../etc/passwd")),
    ("O2", "trial_output_v1", "full", set_at("artifacts.0.path", "../x")),
    ("O2", "trial_output_v1", "full", set_at("artifacts.0.path", "/output/x")),
    ("O2", "trial_output_v1", "full", set_at("artifacts.0.path", "/out")),
    ("J1", "trial_output_v1", "full", set_at("metrics.cost_usd", float("nan"))),
    ("J1", "metrics_v1", "full", set_at("metrics.cost_usd", float("inf"))),
    ("F1", "manifest_v1", "full", set_at("files.0.path", "/grades.json")),
    ("F1", "manifest_v1", "full", set_at("files.0.path", "a/../b")),
    ("F1", "manifest_v1", "full", set_at("files.0.path", "a//b")),
    ("F1", "manifest_v1", "full", set_at("files.0.path", "a\\b")),
    ("F1", "trial_record_v1", "completed", set_at("files.0.path", "a\nb")),
    ("F2", "manifest_v1", "full", lambda whole: whole["files"].append(whole["files"][0])),
    ("F2", "trial_record_v1", "completed", lambda whole: whole["files"].append({**whole["files"][0], "path": "a"})),
    ("T1", "trial_record_v1", "lost", set_at("outcome", "success")),
    ("T1", "trial_record_v1", "completed", set_at("outcome", None)),
    ("T1", "trial_record_v1", "completed", set_at("attempts", 0)),
    ("I1", "inclusion_v1", "full", set_at("totals.included", 2)),
    ("I1", "inclusion_v1", "full", set_at("totals.scheduled", 3)),
    ("I2", "inclusion_v1", "full", set_at("rows.1.index", 0)),
    ("I2", "inclusion_v1", "full", lambda whole: set_at("rows.1.trial_id", whole["rows"][0]["trial_id"])(whole)),
    ("K1", "metrics_v1", "full", set_at("missing", {})),
    ("K1", "metrics_v1", "full", set_at("missing", {"lost": "nan", "success": "error"})),
    ("K2", "metrics_v1", "full", set_at("self_reported", [])),
    ("K2", "metrics_v1", "full", set_at("self_reported", ["cost_usd", "success"])),
    ("G1", "grades_v1", "run", set_at("isolation.value", "sealed")),
    ("G1", "grades_v1", "trial", set_at("provenance.caps.0.to", "not_observed")),
    ("R1", "resolved_experiment_v0_3", "cli", lambda whole: whole["variants"].reverse()),
    ("R1", "resolved_experiment_v0_3", "cli", set_at("variant_plan", ["base"])),
    ("Q1", "comparisons_v1", "log_ratio", set_at("comparisons.0.interval.high", -1e9)),
    ("Q1", "comparisons_v1", "log_ratio", set_at("comparisons.0.percentile_interval.low", None)),
    ("Q1", "comparisons_v1", "not_estimable", set_at("comparisons.0.estimands.this_task_set.interval.reason", None)),
    ("Q1", "analysis_summary_v1", "full", lambda whole: whole["primary"][0]["interval"].update(low=0, high=0)),
    ("Q2", "comparisons_v1", "not_estimable", set_at("comparisons.0.reason", None)),
    ("Q2", "comparisons_v1", "not_estimable", set_at("comparisons.0.p.reason", None)),
    ("Q2", "comparisons_v1", "log_ratio", set_at("comparisons.0.manski_bounds.reason", None)),
    ("Q2", "analysis_summary_v1", "full", set_at("primary.0.status", "not_estimable")),
    ("Q3", "paired_diff_v1", "dropped", set_at("baseline_cause", None)),
    ("Q3", "paired_diff_v1", "paired", set_at("variant_cause", "nan")),
    ("Q3", "paired_diff_v1", "paired", set_at("difference", None)),
    ("Q4", "suspects_v1", "full", set_at("suspects.1.p", 0.5)),
]


@pytest.mark.parametrize(("rule", "schema", "case", "change"), BREACHES)
def test_a_breach_is_found_by_its_rule_alone(rule: str, schema: str, case: str, change: Change) -> None:
    whole = keeps_all_rules(schema, case)
    assert check(schema, whole) == []
    change(whole)
    found = check(schema, whole)
    assert {item.rule for item in found} == {rule}
    assert all(item.path.startswith("$") and item.message for item in found)


def keeps_all_rules(schema: str, case: str) -> Any:
    """The stored document, with what only a rule asks for put right."""
    whole = copy.deepcopy(document(schema, case))
    if schema == "harness_manifest_v1":
        whole.setdefault("harness", {"name": "h", "exec_digest": "sha256:" + "0" * 64})
    if schema == "grades_v1":
        for name in ("replay", "interpretability", "comparability"):
            whole[name]["value"] = whole[name]["caps"][0]["to"]
    return whole


def test_every_rule_that_is_registered_has_a_breach_here() -> None:
    numbers = {rule.__doc__.split(":")[0] for rules in RULES.values() for rule in rules if rule.__doc__}
    assert numbers | {"J1"} == {rule for rule, *_ in BREACHES}
    assert set(RULES) <= set(schema_names())


def test_a_requested_allowlist_that_is_not_in_force_is_an_honest_record() -> None:
    whole = document("state_inventory_v1")
    whole["network"] |= {"mode_effective": "full", "enforcement_effective": "none"}
    whole["network"]["egress_self_test"] = {"performed": False, "cases": []}
    assert check("state_inventory_v1", whole) == []


@pytest.mark.parametrize("path", ["plan.md", "/out/plan.md", "/out/a/b.txt", "a/b.txt", "..plan"])
def test_paths_inside_out_are_kept(path: str) -> None:
    whole = document("trial_output_v1")
    whole["artifacts"][0]["path"] = path
    assert check_trial_output(whole) == []


def test_the_out_folder_of_a_sandbox_without_mounts_is_its_own() -> None:
    whole = document("trial_output_v1")
    whole["artifacts"][0]["path"] = "/srv/trial/out/plan.md"
    assert check_trial_output(whole, out="/srv/trial/out") == []
    assert [item.rule for item in check_trial_output(whole)] == ["O2"]


@pytest.mark.parametrize("data", [b'{"a":1,"a":2}', b'{"a":NaN}', b'{"a":1e999}', b'{"a":9007199254740993}', b"{"])
def test_bytes_that_two_readers_read_differently_break_rule_j2(data: bytes) -> None:
    assert [item.rule for item in keys_are_unique(data)] == ["J2"]


def test_bytes_that_all_readers_read_alike_keep_rule_j2() -> None:
    assert list(keys_are_unique(b'{"a":{"a":1},"b":2}')) == []


KEYS = (
    "caps",
    "cases",
    "egress_self_test",
    "files",
    "integration_level",
    "isolation",
    "metrics",
    "missing",
    "network",
    "outcome",
    "path",
    "rows",
    "runtime",
    "self_reported",
    "sources",
    "status",
    "to",
    "totals",
    "tracing",
    "trial_id",
    "value",
    "variants",
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=100, deadline=None)
@given(json_values)
def test_no_document_however_wrong_makes_a_rule_raise(value: Any) -> None:
    for schema in document_rules.RULES:
        check(schema, value)
