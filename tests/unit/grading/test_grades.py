"""Grades say what was observed and no more: each rule of each scale, from evidence alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from labaudit.evidence.observation import (
    SOURCES,
    Coverage,
    NotObserved,
    ObservedEvents,
    ObservedHooks,
    ObservedLevel,
    ObservedManifest,
    ObservedNetwork,
    ObservedSdk,
    ObservedTraces,
    ObservedTrial,
    ObservedViolations,
    Unenforced,
)
from labaudit.grading.grades import emit, grade_run, grade_trial
from labaudit.records.grades import Grades
from labaudit.records.ids import Ids
from labaudit.records.inclusion import Inclusion, InclusionRow, InclusionTotals
from labaudit.records.schema_registry import validate
from labaudit.records.state_inventory import SelfTestCase

NETWORK = ObservedNetwork("none", "none", "docker_none", "none", (), False, (), False)
ALLOWLIST = ObservedNetwork(
    "allowlist_enforced",
    "allowlist_enforced",
    "unix_socket_proxy",
    "residual",
    ("model.test",),
    True,
    (
        SelfTestCase(target="model.test:443", expected="allow", observed="allow", ok=True),
        SelfTestCase(target="canary", expected="block", observed="block", ok=True),
    ),
    True,
)
HOOKS = ObservedHooks(True, True, False, 9, turn_count=2, step_count=2, acks_missing=0, causal_without_step=0)
TRIAL = ObservedTrial(
    ids=Ids(run_id="r", trial_id="t", variant_id="v", task_id="k", repl_idx=0),
    outcome="success",
    lost=False,
    attempts=1,
    evidence_origin="local",
    profile="hermetic_functional_v2",
    end_cause="exited",
    level=ObservedLevel("cli_events", "cli_events", "cli_events", "a valid hook stream"),
    sources={name: Coverage(name in ("framework_events", "hooks"), 1, 1) for name in SOURCES},
    manifest=ObservedManifest(True, True, True, False),
    hooks=HOOKS,
    traces=ObservedTraces(False, "none", NotObserved("no traces")),
    sdk=ObservedSdk(False, NotObserved("no sdk"), 0, False, "no record"),
    network=NETWORK,
    violations=ObservedViolations(False, False),
    unenforced=(),
    events=ObservedEvents(True, True, True, 7),
    engine="docker",
)


def _values(trial: ObservedTrial) -> dict[str, str]:
    grades = grade_trial(trial)
    assert validate("grades_v1", grades.to_json()) == []
    names = ("isolation", "replay", "interpretability", "comparability", "provenance")
    return {name: getattr(grades, name).value for name in names}


def test_a_clean_trial_without_network_is_sealed_and_replays_at_best_effort() -> None:
    assert _values(TRIAL) == {
        "isolation": "sealed",
        "replay": "best_effort",
        "interpretability": "step",
        "comparability": "not_observed",
        "provenance": "hashed",
    }


@pytest.mark.parametrize(
    ("change", "value", "rule"),
    [
        ({"network": ALLOWLIST}, "bounded", "I08"),
        ({"network": replace(ALLOWLIST, enforcement="none")}, "leaky", "I07"),
        ({"network": replace(ALLOWLIST, enforcement="unknown")}, "leaky", "I07"),
        ({"network": replace(ALLOWLIST, mode_effective="full", enforcement="none")}, "leaky", "I06"),
        ({"network": replace(ALLOWLIST, self_test_performed=False, self_test_cases=())}, "leaky", "I09"),
        ({"network": replace(ALLOWLIST, self_test_cases=ALLOWLIST.self_test_cases[:1])}, "leaky", "I09"),
        (
            {"network": replace(NETWORK, mode_requested="full", mode_effective="full", enforcement="none")},
            "leaky",
            "I05",
        ),
        ({"network": replace(NETWORK, bypass_risk="high")}, "leaky", "I10"),
        ({"network": replace(NETWORK, bypass_risk=NotObserved("no probe"))}, "bounded", "I10"),
        ({"network": NotObserved("no state_inventory.json")}, "not_observed", "I02"),
        ({"engine": "process"}, "leaky", "I04"),
        ({"violations": ObservedViolations(True, False, ("wrote /tmp2",))}, "leaky", "I11"),
        ({"violations": ObservedViolations(False, True)}, "bounded", "I12"),
        ({"unenforced": (Unenforced("memory_mb", "no cgroup"),)}, "bounded", "I13"),
        ({"unenforced": NotObserved("no ext")}, "bounded", "I13"),
        ({"events": ObservedEvents(True, True, False, problem="line 3")}, "not_observed", "I03"),
        ({"evidence_origin": "imported"}, "not_observed", "I01"),
    ],
)
def test_isolation_is_capped_by_what_was_found(change: dict[str, object], value: str, rule: str) -> None:
    grade = grade_trial(replace(TRIAL, **change)).isolation  # type: ignore[arg-type]
    assert grade.value == value
    assert rule in {cap.rule for cap in grade.caps}


@pytest.mark.parametrize(
    ("level", "value"),
    [("cli_basic", "none"), ("cli_events", "best_effort"), ("otel", "best_effort"), ("sdk_control", "checkpointed")],
)
def test_replay_follows_the_observed_level(level: str, value: str) -> None:
    observed = ObservedLevel("sdk_full", "sdk_full", level, "seen")  # type: ignore[arg-type]
    assert grade_trial(replace(TRIAL, level=observed)).replay.value == value


def test_strict_replay_rests_on_complete_boundaries() -> None:
    full = replace(TRIAL, level=ObservedLevel("sdk_full", "sdk_full", "sdk_full", "boundaries"))
    complete = replace(full, sdk=ObservedSdk(True, 2, 4, True))
    assert grade_trial(complete).replay.value == "strict"
    assert grade_trial(full).replay.value == "checkpointed"
    broken = replace(complete, hooks=replace(HOOKS, acks_missing=1))
    assert grade_trial(broken).replay.value == "best_effort"


@pytest.mark.parametrize(
    ("hooks", "replay", "interpretability"),
    [
        (replace(HOOKS, acks_missing=1), "best_effort", "turn"),
        (replace(HOOKS, causal_without_step=2), "best_effort", "turn"),
        (replace(HOOKS, valid=False, findings_total=1), "none", "output"),
        (replace(HOOKS, step_count=0), "best_effort", "turn"),
        (ObservedHooks(False, False, False), "best_effort", "output"),
    ],
)
def test_a_weaker_stream_lowers_replay_and_interpretability(
    hooks: ObservedHooks, replay: str, interpretability: str
) -> None:
    values = _values(replace(TRIAL, hooks=hooks))
    assert (values["replay"], values["interpretability"]) == (replay, interpretability)


def test_a_missing_manifest_leaves_no_replay() -> None:
    manifest = ObservedManifest(False, False, True, True, "harness_manifest.json is missing")
    assert grade_trial(replace(TRIAL, manifest=manifest)).replay.value == "none"


def test_an_unsealed_log_has_no_provenance() -> None:
    assert grade_trial(replace(TRIAL, events=ObservedEvents(True, False, True))).provenance.value == "none"
    assert grade_trial(replace(TRIAL, events=ObservedEvents(False, False, False))).provenance.value == "none"


def test_a_network_carries_the_caveat_about_tools_at_the_provider() -> None:
    assert grade_trial(TRIAL).caveats == ()
    assert [item.id for item in grade_trial(replace(TRIAL, network=ALLOWLIST)).caveats] == ["provider_side_tools"]


def _inclusion(count: int) -> Inclusion:
    rows = tuple(
        InclusionRow(
            index=index, trial_id=f"t{index}", variant_id="v", task_id="k", repl_idx=index, status="included",
            rule="N00", reason="completed", outcome="success", attempts=1,
        )
        for index in range(count)
    )  # fmt: skip
    totals = InclusionTotals(scheduled=count, included=count, excluded=0, lost=0)
    return Inclusion(run_id="r", rows=rows, totals=totals)


def test_a_run_is_as_good_as_its_worst_trial_and_says_how_many() -> None:
    grades = grade_run("r", [TRIAL, TRIAL, replace(TRIAL, engine="process")], _inclusion(3), None)
    assert grades.isolation.value == "leaky"
    assert grades.isolation.caps[0].sentence.startswith("1 of 3 trials:")
    assert grades.comparability.value == "not_observed"
    assert validate("grades_v1", grades.to_json()) == []


def test_a_run_without_trials_grades_nothing() -> None:
    grades = grade_run("r", [], _inclusion(0), None)
    assert {grades.isolation.value, grades.replay.value} == {"not_observed"}


def test_grades_written_are_grades_read(tmp_path) -> None:
    grades = grade_trial(TRIAL)
    emit(grades, tmp_path / "grades.json")
    assert Grades.from_bytes((tmp_path / "grades.json").read_bytes()) == grades
