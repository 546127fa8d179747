"""Odd data to labelled results: never a zero-width interval, a NaN, or a silent drop."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labaudit.analysis import analyse_run
from labaudit.analysis.runner import Analysis
from labaudit.errors import BadInput
from labaudit.records.comparisons import Comparison
from tests.unit.analysis.made_up import COST, SUCCESS, Trial, binary_pairs, broken_files, write_run


def analysed(folder: Path, trials: list[Trial], **options: Any) -> Analysis:
    run = write_run(folder, trials, **options)
    analysis = analyse_run(run)
    for path in run.analysis.rglob("*.json*"):
        text = path.read_text()
        assert "NaN" not in text
        assert "Infinity" not in text
    for one in analysis.comparisons.comparisons:
        check_intervals(one)
    assert broken_files(run) == []
    return analysis


def check_intervals(one: Comparison) -> None:
    """Every interval has a width, or a reason stands in its place."""
    estimands = (one.estimands.tasks_like_these.interval, one.estimands.this_task_set.interval)
    for interval in (one.interval, one.percentile_interval, *estimands):
        if interval.low is None or interval.high is None:
            assert interval.reason is not None
        else:
            assert interval.low < interval.high
    if one.p.value is None:
        assert one.p.reason is not None
    if one.estimate is None:
        assert one.reason is not None


def only(analysis: Analysis) -> Comparison:
    (one,) = analysis.comparisons.comparisons
    return one


def warnings_of(one: Comparison) -> set[str]:
    return {warning.code for warning in one.warnings}


def costs(values: dict[str, list[Any]]) -> list[Trial]:
    return [
        Trial(variant, f"t{task}", metrics={"cost": value})
        for variant, column in values.items()
        for task, value in enumerate(column)
    ]


def test_a_metric_that_is_a_string_is_labelled_as_not_usable(tmp_path: Path) -> None:
    one = only(analysed(tmp_path, costs({"base": ["cheap"] * 4, "drop": ["dear"] * 4}), metrics=(COST,)))
    assert (one.status, one.reason and one.reason.code) == ("not_estimable", "metric_not_usable")
    assert one.arms.variant.missing_by_cause.invalid == 4


def test_a_metric_that_nobody_produced_is_labelled_and_keeps_its_place_in_the_family(tmp_path: Path) -> None:
    trials = binary_pairs([1, 0, 1, 1, 0, 1, 0, 1], [0, 0, 1, 0, 0, 1, 0, 0])
    found = analysed(tmp_path, trials, metrics=(SUCCESS, COST), primary=["success", "cost"]).comparisons.comparisons
    by_name = {one.metric: one for one in found}
    assert by_name["cost"].reason is not None
    assert by_name["cost"].reason.code == "metric_not_produced"
    assert by_name["success"].p.family_size == 2
    assert by_name["success"].p.adjusted == min(1.0, 2 * float(by_name["success"].p.value or 0))


def test_a_planned_metric_that_no_one_declared_is_said_to_be_undeclared(tmp_path: Path) -> None:
    one = next(
        one
        for one in analysed(tmp_path, binary_pairs([1, 0], [0, 1]), primary=["sucess"]).comparisons.comparisons
        if one.metric == "sucess"
    )
    assert not one.declared
    assert "undeclared_metric" in warnings_of(one)
    assert one.status == "not_estimable"


def test_a_constant_metric_gets_no_interval_and_the_reason(tmp_path: Path) -> None:
    one = only(analysed(tmp_path, costs({"base": [2.5] * 6, "drop": [2.5] * 6}), metrics=(COST,)))
    assert one.estimate == 0
    assert one.interval.reason is not None
    assert one.interval.reason.code == "constant_metric"


def test_binary_arms_that_always_agree_get_the_bound_on_what_they_can_hide(tmp_path: Path) -> None:
    trials = [Trial(v, f"t{t}", r, metrics={"success": 1}) for v in ("base", "drop") for t in range(30) for r in (0, 1)]
    one = only(analysed(tmp_path, trials, replications=2))
    half = 1.959964**2 / (30 + 1.959964**2)
    assert one.interval.method == "zero_variance_bound"
    assert (one.interval.low, one.interval.high) == pytest.approx((-half, half), abs=1e-6)
    assert one.p.value == 1
    assert "zero_variance_bound" in warnings_of(one)


def test_one_task_shows_no_spread(tmp_path: Path) -> None:
    one = only(analysed(tmp_path, costs({"base": [2.0], "drop": [3.0]}), metrics=(COST,)))
    assert one.estimate == 1
    assert one.interval.reason is not None
    assert one.interval.reason.code == "one_unit"
    assert one.p.value == 1


def test_one_binary_task_still_has_a_score_interval_with_a_warning(tmp_path: Path) -> None:
    one = only(analysed(tmp_path, binary_pairs([0], [1])))
    assert one.interval.method == "tango"
    assert {"few_tasks", "cannot_reach_level"} <= warnings_of(one)


def test_one_replicate_says_why_tasks_cannot_be_taken_as_fixed(tmp_path: Path) -> None:
    one = only(analysed(tmp_path, binary_pairs([1, 0, 1], [1, 1, 0])))
    assert one.estimands.this_task_set.reason is not None
    assert one.estimands.this_task_set.reason.code == "within_needs_replicates"


def test_unequal_replicates_are_said(tmp_path: Path) -> None:
    trials = [
        Trial(v, f"t{t}", r, metrics={"success": (t + r + len(v)) % 2})
        for v in ("base", "drop")
        for t in range(24)
        for r in range(1 + t % 3)
    ]
    one = only(analysed(tmp_path, trials, replications=3))
    assert (one.replicates.min, one.replicates.max) == (1, 3)
    assert "unequal_replicates" in warnings_of(one)


@pytest.mark.parametrize("written", ["1e400", "-1e400"])
def test_an_infinite_value_in_a_file_is_refused_by_name(tmp_path: Path, written: str) -> None:
    run = write_run(tmp_path, costs({"base": [1.0, 2.0], "drop": [1.5, 2.5]}), metrics=(COST,))
    path = run.trial("drop.t0.r0").metrics
    path.write_text(path.read_text().replace("1.5", written))
    with pytest.raises(BadInput, match=r"drop\.t0\.r0/metrics\.json"):
        analyse_run(run)


def test_values_marked_nan_or_invalid_are_counted_by_cause(tmp_path: Path) -> None:
    trials = costs({"base": [1.0, 2.0, 3.0, 4.0], "drop": [1.5, 2.5, 3.5, 4.5]})
    trials[4] = Trial("drop", "t0", metrics={"cost": None}, missing={"cost": "nan"})
    trials[5] = Trial("drop", "t1", metrics={"cost": None}, missing={"cost": "error"})
    trials[6] = Trial("drop", "t2", metrics={}, missing={"cost": "absent"})
    one = only(analysed(tmp_path, trials, metrics=(COST,)))
    causes = one.arms.variant.missing_by_cause
    assert (causes.nan, causes.error, causes.absent, causes.missing, causes.invalid) == (1, 1, 1, 0, 0)
    assert one.missingness.dropped_pairs == 3
    assert "missing_values" in warnings_of(one)


def test_a_variant_without_trials_is_labelled(tmp_path: Path) -> None:
    found = analysed(tmp_path, binary_pairs([1, 0], [0, 1]), variants=("drop", "ghost")).comparisons.comparisons
    ghost = next(one for one in found if one.variant == "ghost")
    assert ghost.reason is not None
    assert ghost.reason.code == "variant_without_trials"


def test_a_run_with_a_baseline_alone_has_a_summary_and_says_so(tmp_path: Path) -> None:
    analysis = analysed(tmp_path, [Trial("base", "t0", metrics={"success": 1})], variants=())
    assert analysis.comparisons.comparisons == ()
    assert [warning.code for warning in analysis.summary.warnings] == ["no_variants"]
    assert analysis.summary.variants[0].metrics[0].mean == 1


def test_k_above_the_replicates_is_null_with_a_reason(tmp_path: Path) -> None:
    one = only(analysed(tmp_path, binary_pairs([1, 0, 1], [1, 1, 0])))
    rows = {row.k: row for row in one.arms.variant.pass_k}
    assert rows[1].pass_at_k == pytest.approx(2 / 3)
    assert rows[2].pass_at_k is None
    assert rows[2].reason == "3 of 3 tasks have fewer than 2 valid replicates"


def test_a_log_ratio_of_something_not_positive_is_refused_with_the_count(tmp_path: Path) -> None:
    metric = COST | {"effect": "log_ratio"}
    one = only(analysed(tmp_path, costs({"base": [1.0, 0.0], "drop": [1.0, 2.0]}), metrics=(metric,)))
    assert one.reason is not None
    assert (one.reason.code, one.reason.sentence.split()[0]) == ("nonpositive_for_log_ratio", "1")


def test_different_tasks_get_an_unpaired_estimate_that_is_labelled(tmp_path: Path) -> None:
    trials = [Trial("base", f"a{t}", metrics={"success": t % 2}) for t in range(10)]
    trials += [Trial("drop", f"b{t}", metrics={"success": int(t > 2)}) for t in range(10)]
    one = only(analysed(tmp_path, trials))
    assert (one.design, one.interval.method, one.p.method) == ("unpaired", "newcombe_independent", "fisher_exact")
    assert "unpaired_tasks" in warnings_of(one)
    costs_apart = [Trial(v, f"{v}{t}", metrics={"cost": t * 1.5 + len(v)}) for v in ("base", "drop_") for t in range(8)]
    other = only(analysed(tmp_path / "x", costs_apart, metrics=(COST,), variants=("drop_",)))
    assert (other.interval.method, other.percentile_interval.method) == ("welch_t", "percentile_independent")


def test_a_missing_metrics_file_falls_back_to_the_harness_output_and_says_so(tmp_path: Path) -> None:
    trials = binary_pairs([1, 0, 1, 0], [1, 1, 1, 0])
    trials[0] = Trial("base", "t0000", output={"outcome": "success", "metrics": {"success": 1}})
    trials[1] = Trial("drop", "t0000", output=b"no json at all")
    analysis = analysed(tmp_path, trials)
    assert [warning.code for warning in analysis.comparisons.warnings] == ["fallback_values"]
    assert analysis.comparisons.values_from.trial_output_json == 2
    one = only(analysis)
    assert one.arms.baseline.valid == 4
    assert one.arms.variant.missing_by_cause.invalid == 1


def test_excluded_trials_never_count(tmp_path: Path) -> None:
    trials = binary_pairs([0] * 6, [1] * 6)
    trials[1] = Trial("drop", "t0000", metrics={"success": 0}, status="excluded")
    one = only(analysed(tmp_path, trials))
    assert one.arms.variant.mean == 1
    assert (one.arms.variant.excluded, one.arms.variant.missing) == (1, 1)


def test_a_trial_that_stands_twice_counts_once_and_is_said(tmp_path: Path) -> None:
    run = write_run(tmp_path, binary_pairs([1, 0, 1], [1, 1, 0]))
    document = json.loads(run.inclusion.read_bytes())
    document["rows"].append(document["rows"][0] | {"index": 99})
    run.inclusion.write_text(json.dumps(document))
    analysis = analyse_run(run)
    assert [warning.code for warning in analysis.comparisons.warnings] == ["duplicate_trials"]
    assert analysis.comparisons.comparisons[0].arms.baseline.valid == 3


@pytest.mark.parametrize("level", [0.5, 0.8, 0.99, 0.999])
def test_any_level_gives_an_interval_that_holds_the_estimate(tmp_path: Path, level: float) -> None:
    ci = {"method": "auto", "level": level, "resamples": 500}
    one = only(analysed(tmp_path, binary_pairs([1, 0, 1, 0, 1] * 6, [1, 1, 0, 0, 1] * 6), ci=ci))
    assert one.interval.low is not None
    assert one.interval.high is not None
    assert one.interval.low <= (one.estimate or 0) <= one.interval.high


def grids() -> Iterator[tuple[str, list[Any], list[Any]]]:
    yield "large", [1e100, -1e100, 1e99], [1e100, 1e100, -1e100]
    yield "tiny", [1e-300, 2e-300, 5e-324], [3e-300, 1e-300, 1e-310]
    yield "mixed", [1e15, 1e-15, 0.0], [0.1, 0.2, 0.3]
    yield "one differs", [0.0] * 30, [*[0.0] * 29, 7.0]


@pytest.mark.parametrize(("name", "baseline", "variant"), list(grids()), ids=[name for name, _, _ in grids()])
def test_extreme_numbers_stay_finite(tmp_path: Path, name: str, baseline: list[Any], variant: list[Any]) -> None:
    for effect in ("mean_diff", "median_diff"):
        folder = tmp_path / effect
        one = only(analysed(folder, costs({"base": baseline, "drop": variant}), metrics=(COST | {"effect": effect},)))
        assert one.status == "estimated"
        assert math.isfinite(one.estimate or 0)


def test_numbers_too_large_to_calculate_with_are_counted_as_invalid(tmp_path: Path) -> None:
    one = only(analysed(tmp_path, costs({"base": [1.0, 2.0, 1e300], "drop": [1.5, 2.5, 3.0]}), metrics=(COST,)))
    assert one.arms.baseline.missing_by_cause.invalid == 1
    assert one.n_tasks == 2


@pytest.mark.parametrize("paired", [True, False])
def test_equal_differences_that_arithmetic_blurs_count_as_equal(tmp_path: Path, paired: bool) -> None:
    """0.1 added to 0.1, 0.2, ... leaves a spread of 1e-17: an interval from it would claim perfect knowledge."""
    trials = [
        Trial(variant, f"{'t' if paired else variant}{task}", repl, metrics={"cost": size / 10 + more})
        for variant, more in (("base", 0.0), ("drop", 0.1))
        for task, size in enumerate(range(1, 9) if paired else [1] * 8)
        for repl in range(3)
    ]
    one = only(analysed(tmp_path, trials, metrics=(COST,), replications=3))
    assert one.estimate == pytest.approx(0.1)
    assert one.interval.method == "zero_variance_bound"
    assert (one.interval.high or 0) - (one.interval.low or 0) > 0.01
