"""What the signed plan may ask for: missingness policies, clusters, estimands, methods, effects, corrections."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labaudit.analysis import analyse_run
from labaudit.analysis.runner import Analysis
from labaudit.records.comparisons import Comparison
from tests.unit.analysis.made_up import COST, SUCCESS, Trial, binary_pairs, write_run


def analysed(folder: Path, trials: list[Trial], **options: Any) -> Analysis:
    return analyse_run(write_run(folder, trials, **options))


def first(analysis: Analysis) -> Comparison:
    return analysis.comparisons.comparisons[0]


def codes(one: Comparison) -> set[str]:
    return {warning.code for warning in one.warnings}


def holes() -> list[Trial]:
    """Two replicates of three tasks; the variant lost one replicate of t0 and both of t1."""
    values = {
        ("base", "t0"): (1, 0), ("base", "t1"): (1, 1), ("base", "t2"): (0, 0),
        ("drop", "t0"): (1, None), ("drop", "t1"): (None, None), ("drop", "t2"): (1, 0),
    }  # fmt: skip
    return [
        Trial(variant, task, repl, metrics={} if value is None else {"success": value}, outcome="error")
        for (variant, task), pair in values.items()
        for repl, value in enumerate(pair)
    ]


@pytest.mark.parametrize(
    ("policy", "estimate", "tasks", "counts"),
    [
        # t0: replicate 0 alone, 1 - 1; t1 drops out; t2: 0.5 - 0
        ("paired_drop", 0.25, 2, (3, 1, 0, 0)),
        # t0: 0.5 - 0.5; t1: 0 - 1; t2: 0.5 - 0
        ("treat_as_failure", -1 / 6, 3, (0, 0, 0, 3)),
        # t0: 1 - 0.5 (the mean of the replicates that are there); t1: no difference; t2: 0.5 - 0
        ("paired_impute", 1 / 3, 3, (0, 0, 3, 0)),
    ],
)
def test_each_policy_on_a_table_worked_out_by_hand(
    tmp_path: Path, policy: str, estimate: float, tasks: int, counts: tuple[int, ...]
) -> None:
    one = first(analysed(tmp_path, holes(), replications=2, missingness=policy))
    done = one.missingness
    assert one.estimate == pytest.approx(estimate)
    assert one.n_tasks == tasks
    assert (done.dropped_pairs, done.dropped_tasks, done.imputed_values, done.failure_values) == counts
    assert done.policy == policy


def test_all_three_policies_agree_when_nothing_is_missing(tmp_path: Path) -> None:
    trials = binary_pairs([1, 0, 1, 1, 0, 0, 1], [1, 1, 0, 1, 1, 0, 1])
    found = [
        first(analysed(tmp_path / policy, trials, missingness=policy))
        for policy in ("paired_drop", "treat_as_failure", "paired_impute")
    ]
    assert len({(one.estimate, one.interval, one.p.value) for one in found}) == 1


def test_manski_bounds_hold_what_the_missing_could_have_been(tmp_path: Path) -> None:
    one = first(analysed(tmp_path, holes(), replications=2))
    # Baseline task means 0.5, 1, 0; the variant's if all holes failed 0.5, 0, 0.5 and if all succeeded 1, 1, 0.5.
    assert (one.manski_bounds.low, one.manski_bounds.high) == pytest.approx((1 / 3 - 0.5, 2.5 / 3 - 0.5))


def test_differential_missingness_is_found_by_fisher(tmp_path: Path) -> None:
    trials = binary_pairs([1] * 20, [1] * 20)
    trials = [
        Trial(t.variant, t.task, metrics={}) if t.variant == "drop" and int(t.task[1:]) < 8 else t for t in trials
    ]
    one = first(analysed(tmp_path, trials))
    assert one.missingness.differential_p == pytest.approx(0.003276, abs=1e-5)
    assert "differential_missingness" in codes(one)


def test_treat_as_failure_needs_a_declared_worst_value(tmp_path: Path) -> None:
    trials = [Trial(v, f"t{t}", metrics={"cost": 1.0 + t}) for v in ("base", "drop") for t in range(4)]
    trials[-1] = Trial("drop", "t3", metrics={})
    refused = first(analysed(tmp_path / "a", trials, metrics=(COST,), missingness="treat_as_failure"))
    assert refused.reason is not None
    assert refused.reason.code == "worst_not_declared"
    worst = first(analysed(tmp_path / "b", trials, metrics=(COST | {"worst": 14.0},), missingness="treat_as_failure"))
    assert worst.estimate == pytest.approx((14.0 - 4.0) / 4)
    assert "failure_values" in codes(worst)


def test_lower_is_better_turns_failure_and_verdict_around(tmp_path: Path) -> None:
    metric = SUCCESS | {"direction": "lower"}
    trials = [t if t.task != "t0000" or t.variant == "base" else Trial("drop", "t0000", metrics={}) for t in
              binary_pairs([1] * 20, [0] * 20)]  # fmt: skip
    one = first(analysed(tmp_path, trials, metrics=(metric,), missingness="treat_as_failure"))
    assert one.arms.variant.missing == 1
    assert one.estimate == pytest.approx(-19 / 20)
    assert one.favours == "variant"


def test_clusters_widen_the_interval_and_are_the_units(tmp_path: Path) -> None:
    tasks = [{"id": f"t{n:02}", "repo": f"r{n // 6}"} for n in range(36)]
    trials = [
        Trial(v, f"t{n:02}", r, metrics={"success": int((n // 6) % 2 == 0 or v == "base") ^ (n % 7 == 0)})
        for n in range(36)
        for r in (0, 1)
        for v in ("base", "drop")
    ]
    alone = first(analysed(tmp_path / "a", trials, tasks=tasks, replications=2))
    clustered = first(analysed(tmp_path / "b", trials, tasks=tasks, replications=2, cluster="repo"))
    assert alone.estimate == pytest.approx(clustered.estimate)
    assert (alone.n_units, clustered.n_units) == (36, 6)
    assert (clustered.se or 0) > 1.3 * (alone.se or 1)
    assert "few_tasks" in codes(clustered)


def test_a_cluster_field_that_tasks_lack_or_a_dataset_that_is_gone_is_said(tmp_path: Path) -> None:
    tasks = [{"id": "t0000", "repo": "x"}, {"id": "t0001"}, {"id": "t0002", "repo": "x"}]
    run = write_run(tmp_path / "a", binary_pairs([1, 0, 1], [0, 0, 1]), tasks=tasks, cluster="repo")
    found = analyse_run(run)
    assert [warning.sentence for warning in found.summary.warnings] == [
        "1 tasks have no value for the cluster field repo; each is its own cluster."
    ]
    assert found.comparisons.comparisons[0].n_units == 2
    for stored in run.artifacts_folder.rglob("*"):
        if stored.is_file():
            stored.unlink()
    assert [warning.code for warning in analyse_run(run).summary.warnings] == ["cluster_unreadable"]


def test_the_estimand_of_the_plan_is_the_one_in_front_and_both_are_shown(tmp_path: Path) -> None:
    stream = np.random.default_rng(2)
    trials = [
        Trial(v, f"t{t:02}", r, metrics={"success": int(stream.random() < (t % 5) / 5 + 0.1 * (v == "drop"))})
        for t in range(20)
        for r in range(4)
        for v in ("base", "drop")
    ]
    one = first(analysed(tmp_path, trials, replications=4, estimand="this_task_set"))
    both = one.estimands
    assert one.interval == both.this_task_set.interval
    assert both.this_task_set.interval.method == "satterthwaite_t"
    assert both.this_task_set.estimate == pytest.approx(both.tasks_like_these.estimate)
    assert both.tasks_like_these.interval.low is not None


@pytest.mark.parametrize(
    ("effect", "method", "p_method"),
    [
        ("mean_diff", "studentized", "bootstrap_studentized"),
        ("median_diff", "order_statistics", "sign_test"),
        ("log_ratio", "studentized", "sign_flip_monte_carlo"),
    ],
)
def test_each_effect_has_the_method_of_the_design_and_a_percentile_interval_beside(
    tmp_path: Path, effect: str, method: str, p_method: str
) -> None:
    stream = np.random.default_rng(9)
    trials = [
        Trial(v, f"t{t:02}", metrics={"cost": float(stream.lognormal(0.4 * (v == "drop")))})
        for t in range(40)
        for v in ("base", "drop")
    ]
    one = first(analysed(tmp_path, trials, metrics=(COST | {"effect": effect},)))
    assert (one.interval.method, one.p.method) == (method, p_method)
    assert one.percentile_interval.low is not None
    if effect == "log_ratio":
        assert one.ratio is not None
        assert one.ratio.estimate == pytest.approx(math.exp(float(one.estimate or 0)))


def test_binary_with_one_replicate_is_tango_with_exact_mcnemar_and_with_more_studentised(tmp_path: Path) -> None:
    base, drop = [1, 0, 1, 1, 0, 0, 1, 0] * 4, [1, 1, 0, 1, 1, 0, 1, 1] * 4
    single = first(analysed(tmp_path / "a", binary_pairs(base, drop)))
    assert (single.interval.method, single.p.method) == ("tango", "mcnemar_exact")
    assert single.percentile_interval.method == "percentile_exact"
    twice = [Trial(t.variant, t.task, r, metrics=t.metrics) for t in binary_pairs(base, drop) for r in (0, 1)]
    double = first(analysed(tmp_path / "b", twice, replications=2))
    assert (double.interval.method, double.p.method) == ("studentized", "sign_flip_exact")
    # Repeating every replicate adds no task, and so no evidence.
    assert double.p.value == pytest.approx(single.p.value)


def test_a_method_that_does_not_fit_is_replaced_with_a_warning(tmp_path: Path) -> None:
    trials = [Trial(v, f"t{t}", metrics={"cost": t * 0.3 + len(v)}) for t in range(9) for v in ("base", "drop")]
    ci = {"method": "tango", "level": 0.95, "resamples": 500}
    one = first(analysed(tmp_path, trials, metrics=(COST,), ci=ci))
    assert "method_not_applicable" in codes(one)


def test_secondary_metrics_form_their_own_family_and_unplanned_ones_get_no_p(tmp_path: Path) -> None:
    names = ("success", "speed", "style", "spare")
    metrics = [SUCCESS | {"name": name} for name in names]
    stream = np.random.default_rng(4)
    trials = [
        Trial(v, f"t{t:02}", metrics={name: int(stream.integers(2)) for name in names})
        for t in range(30)
        for v in ("base", "drop", "more")
    ]
    plan = {"primary": ["success"], "secondary": ["speed", "style"], "variants": ("drop", "more")}
    found = analysed(tmp_path, trials, metrics=metrics, **plan).comparisons.comparisons
    families = {(one.metric, one.p.family, one.p.family_size, one.p.correction) for one in found}
    assert families == {
        ("success", "primary", 2, "holm"), ("speed", "secondary", 4, "bh"), ("style", "secondary", 4, "bh"),
        ("spare", None, None, None),
    }  # fmt: skip
    spare = [one for one in found if one.metric == "spare"]
    assert all(one.p.value is None and one.estimate is not None for one in spare)


def test_metrics_beyond_the_declared_ones_are_kept_and_named(tmp_path: Path) -> None:
    trials = [Trial(v, "t0", metrics={"success": 1, "mood": "fine", "zeal": 3}) for v in ("base", "drop")]
    run = write_run(tmp_path, trials)
    assert analyse_run(run).summary.undeclared_metrics == ("mood", "zeal")
    import pyarrow.parquet as pq

    assert pq.read_table(run.trials_table)["other_metrics"].to_pylist() == ['{"mood":"fine","zeal":3}'] * 2


def test_a_primary_metric_that_the_harness_reports_on_itself_is_said(tmp_path: Path) -> None:
    one = first(analysed(tmp_path, binary_pairs([1, 0], [0, 1]), metrics=(SUCCESS | {"source": "harness"},)))
    assert one.self_reported
    assert "self_reported_primary" in codes(one)


def test_retries_are_counted_by_arm(tmp_path: Path) -> None:
    trials = [*binary_pairs([1, 0, 1], [1, 1, 0]), Trial("drop", "t9", metrics={"success": 1}, attempts=3)]
    trials.append(Trial("base", "t9", metrics={"success": 1}))
    one = first(analysed(tmp_path, trials))
    assert (one.arms.baseline.retried, one.arms.variant.retried) == (0, 1)
    assert "retried_trials" in codes(one)
