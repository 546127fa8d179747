"""What an analysis says of itself must be true of the numbers beside it: scales, reasons, counts, warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import statsmodels.api as sm  # type: ignore[import-untyped]

from labaudit.analysis.pair_bundle import read_pair
from labaudit.analysis.tables import WIDTH, bundle_lines, summary_lines, table
from tests.unit.analysis.made_up import COST, SUCCESS, Trial, binary_pairs, write_run
from tests.unit.analysis.test_bad_input import analysed, costs, only, warnings_of

UNIT_TASKS = 30


@pytest.fixture(autouse=True)
def _no_numeric_warning() -> Iterator[None]:
    """A division by zero that NumPy only mutters about is how a NaN starts."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


def spread_costs(scale: float) -> list[Trial]:
    stream = np.random.default_rng(1)
    base = stream.normal(1.0, 0.1, UNIT_TASKS)
    more = np.abs(stream.normal(1.0, 0.1, UNIT_TASKS))
    return costs({"base": (base * scale).tolist(), "drop": ((base + more) * scale).tolist()})


@pytest.mark.parametrize("power", [-40, -300, -900])
def test_a_metric_in_smaller_units_gives_the_same_p_value_and_the_same_interval(tmp_path: Path, power: int) -> None:
    """Dollars per token lie near 1e-7 and below: no absolute hair may make them equal."""
    scale = 2.0**power
    plain = only(analysed(tmp_path / "plain", spread_costs(1.0), metrics=(COST,)))
    small = only(analysed(tmp_path / "small", spread_costs(scale), metrics=(COST,)))
    assert small.p.value == plain.p.value
    assert small.p.value is not None
    assert small.p.value < 0.01
    for one, other in ((small.interval, plain.interval), (small.percentile_interval, plain.percentile_interval)):
        assert one.method == other.method
        assert one.low is not None
        assert other.low is not None
        assert one.low / scale == pytest.approx(float(other.low), rel=1e-9)


def test_replicates_of_tiny_values_keep_their_errors(tmp_path: Path) -> None:
    trials = [
        Trial(v, f"t{t}", r, metrics={"cost": (1 + t + r + (v == "drop")) * 2.0**-700})
        for v in ("base", "drop")
        for t in range(8)
        for r in range(2)
    ]
    for effect in ("mean_diff", "log_ratio"):
        metric = COST | {"effect": effect}
        one = only(analysed(tmp_path / effect, trials, metrics=(metric,), replications=2))
        assert one.estimands.this_task_set.interval.method == "satterthwaite_t"
        assert one.arms.variant.clustered_se


@pytest.mark.parametrize("tasks", [4, 5])
def test_a_floor_of_p_is_named_only_where_the_test_has_one(tmp_path: Path, tasks: int) -> None:
    """The bootstrap p of values off any lattice may lie below 2^(1-n); saying that it cannot would be false."""
    stream = np.random.default_rng(tasks)
    base = stream.normal(size=tasks)
    one = only(
        analysed(
            tmp_path,
            costs({"base": base.tolist(), "drop": (base + 1 + stream.normal(size=tasks) / 50).tolist()}),
            metrics=(COST,),
        )
    )
    assert one.p.method == "bootstrap_studentized"
    assert one.p.value is not None
    assert one.p.value < 2.0 ** (1 - tasks)
    assert "cannot_reach_level" not in warnings_of(one)


def apart(baseline: list[Any], variant: list[Any], name: str = "cost") -> list[Trial]:
    """Arms on different tasks."""
    return [
        Trial(arm, f"{arm}{task}", metrics={name: value})
        for arm, column in (("base", baseline), ("drop", variant))
        for task, value in enumerate(column)
    ]


def test_a_log_ratio_of_different_tasks_is_refused_when_the_worst_value_has_no_logarithm(tmp_path: Path) -> None:
    metric = COST | {"effect": "log_ratio", "worst": 0.0}
    trials = apart([1.0, 2.0, None, 4.0], [2.0, 3.0, 4.0, 6.0])
    one = only(analysed(tmp_path, trials, metrics=(metric,), missingness="treat_as_failure"))
    assert one.reason is not None
    assert one.reason.code == "nonpositive_for_log_ratio"


def test_unpaired_arms_say_what_the_policy_did_and_how_few_they_are(tmp_path: Path) -> None:
    trials = apart([1.0, 2.0, None, 4.0], [2.0, 3.0, 4.5, 6.0])
    filled = only(
        analysed(tmp_path / "f", trials, metrics=(COST | {"worst": 9.0},), missingness="treat_as_failure")
    )
    assert (filled.missingness.failure_values, filled.missingness.dropped_tasks, filled.n_tasks) == (1, 0, 8)
    assert {"few_tasks", "failure_values"} <= warnings_of(filled)
    dropped = only(analysed(tmp_path / "d", trials, metrics=(COST,)))
    assert (dropped.missingness.failure_values, dropped.missingness.dropped_tasks, dropped.n_tasks) == (0, 1, 7)
    assert (dropped.replicates.min, dropped.replicates.max) == (1, 1)
    assert dropped.minimal_detectable_effect.value is not None
    t = scipy.stats.ttest_ind([2.0, 3.0, 4.5, 6.0], [1.0, 2.0, 4.0], equal_var=False)
    assert dropped.se is not None
    factor = scipy.stats.t.ppf(0.975, t.df) + scipy.stats.t.ppf(0.8, t.df)
    assert dropped.minimal_detectable_effect.value == pytest.approx(factor * dropped.se)


def test_an_unpaired_difference_of_rates_stays_between_minus_one_and_one(tmp_path: Path) -> None:
    trials = [
        Trial(arm, f"{arm}{task}", repl, metrics={"success": int((task == 0 and repl == 0) != (arm == "drop"))})
        for arm in ("base", "drop")
        for task in range(3)
        for repl in range(2)
    ]
    one = only(analysed(tmp_path, trials, replications=2))
    assert (one.design, one.interval.method, one.interval.high) == ("unpaired", "welch_t", 1)


def test_unpaired_arms_are_resampled_by_their_declared_clusters(tmp_path: Path) -> None:
    """Tasks of one repository are not independent; statsmodels' cluster-robust error is the same number."""
    stream = np.random.default_rng(3)
    levels = {(arm, repo): stream.normal() for arm in ("base", "drop") for repo in range(4)}
    trials, tasks, frame = [], [], []
    for arm in ("base", "drop"):
        for task in range(24):
            value = float(levels[arm, task % 4] + stream.normal() / 10)
            trials.append(Trial(arm, f"{arm}{task}", metrics={"cost": value}))
            tasks.append({"id": f"{arm}{task}", "repo": f"{arm}-{task % 4}"})
            frame.append((arm, task % 4, value))
    found = only(analysed(tmp_path / "c", trials, metrics=(COST,), tasks=tasks, cluster="repo"))
    alone = only(analysed(tmp_path / "a", trials, metrics=(COST,), tasks=tasks))
    assert (found.n_units, alone.n_units) == (8, 48)
    squares = 0.0
    for arm in ("base", "drop"):
        values = np.array([value for one, _, value in frame if one == arm])
        groups = np.array([repo for one, repo, _ in frame if one == arm])
        fit = sm.OLS(values, np.ones(len(values))).fit(
            cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False}
        )
        squares += float(fit.bse[0]) ** 2 * 4 / 3
    assert found.se == pytest.approx(np.sqrt(squares))
    assert found.se is not None
    assert alone.se is not None
    assert found.se > 2 * alone.se


def test_a_median_over_clusters_says_that_it_is_one(tmp_path: Path) -> None:
    tasks = [{"id": f"t{task}", "repo": "big" if task < 20 else f"r{task}"} for task in range(30)]
    values = [1.0 + task / 100 if task < 20 else -1.0 - task / 100 for task in range(30)]
    trials = costs({"base": [0.0] * 30, "drop": values})
    metric = COST | {"effect": "median_diff"}
    one = only(analysed(tmp_path, trials, metrics=(metric,), tasks=tasks, cluster="repo"))
    assert "median_of_clusters" in warnings_of(one)
    assert one.minimal_detectable_effect.reason is not None
    assert one.minimal_detectable_effect.reason.code == "detectable_not_for_median"


def test_bounds_of_a_mean_do_not_stand_beside_another_effect(tmp_path: Path) -> None:
    trials = binary_pairs([1, 0] * 10, [1, 1, 0, 1] * 5)
    trials[0] = Trial("base", "t0000", metrics={"success": None})
    one = only(analysed(tmp_path, trials, metrics=(SUCCESS | {"effect": "median_diff"},)))
    assert one.manski_bounds.low is None
    assert one.manski_bounds.reason is not None
    assert one.manski_bounds.reason.code == "bounds_not_for_effect"


def holed(missing: set[str]) -> list[Trial]:
    return [
        Trial(
            arm, f"t{task}", repl,
            metrics={"cost": None if arm == "drop" and f"t{task}" in missing else float((task * 7 + repl * 3) % 11)},
        )
        for arm in ("base", "drop")
        for task in range(8)
        for repl in range(2)
    ]  # fmt: skip


def test_imputed_tasks_are_no_replicates(tmp_path: Path) -> None:
    trials = holed({"t0", "t1", "t2"})
    one = only(analysed(tmp_path, trials, metrics=(COST,), replications=2, missingness="paired_impute"))
    assert one.status == "estimated"
    assert one.estimands.this_task_set.reason is not None
    assert one.estimands.this_task_set.reason.code == "within_needs_replicates"


def test_an_arm_without_any_value_is_not_estimated_from_imputed_ones(tmp_path: Path) -> None:
    trials = holed({f"t{task}" for task in range(8)})
    one = only(analysed(tmp_path, trials, metrics=(COST,), replications=2, missingness="paired_impute"))
    assert (one.status, one.reason and one.reason.code) == ("not_estimable", "no_pair_left")


def test_a_worst_value_between_zero_and_one_is_not_put_into_a_table_of_successes(tmp_path: Path) -> None:
    trials = binary_pairs([1, 0] * 10, [1, 1, 0, 1] * 5)
    trials[0] = Trial("base", "t0000", metrics={"success": None})
    one = only(analysed(tmp_path, trials, metrics=(SUCCESS | {"worst": 0.5},), missingness="treat_as_failure"))
    assert (one.interval.method, one.p.method) == ("studentized", "sign_flip_exact")
    assert one.estimate == pytest.approx(0.275)


def test_few_resamples_are_blamed_on_the_plan_and_not_on_the_data(tmp_path: Path) -> None:
    ci = {"method": "auto", "level": 0.95, "resamples": 10}
    one = only(analysed(tmp_path, spread_costs(1.0), metrics=(COST,), ci=ci))
    assert "few_resamples" in warnings_of(one)
    assert "few_informative_tasks" not in warnings_of(one)


def test_a_constant_metric_is_not_said_to_have_a_bounding_interval(tmp_path: Path) -> None:
    one = only(analysed(tmp_path, costs({"base": [2.5] * 6, "drop": [2.5] * 6}), metrics=(COST,)))
    assert one.interval.low is None
    assert "zero_variance_bound" not in warnings_of(one)


def test_warnings_belong_to_the_reading_of_the_tasks_that_the_plan_asks_for(tmp_path: Path) -> None:
    trials = [
        Trial(arm, f"t{task}", repl, metrics={"success": (task + repl + (arm == "drop") * (task % 3)) % 2})
        for arm in ("base", "drop")
        for task in range(4)
        for repl in range(3)
    ]
    sampled = only(analysed(tmp_path / "s", trials, replications=3))
    fixed = only(analysed(tmp_path / "f", trials, replications=3, estimand="this_task_set"))
    assert "cannot_reach_level" in warnings_of(sampled)
    assert "cannot_reach_level" not in warnings_of(fixed)


@pytest.mark.parametrize("scale", [1e-199, -1.2345e-12, -9.87654e99])
def test_tables_of_long_numbers_stay_within_the_terminal(tmp_path: Path, scale: float) -> None:
    stream = np.random.default_rng(5)
    values = {arm: (stream.normal(size=9) * scale).tolist() for arm in ("base", "drop")}
    run = write_run(tmp_path, costs(values), metrics=(COST,))
    analysis = analysed(tmp_path / "again", costs(values), metrics=(COST,))
    shown = summary_lines(analysis.summary, analysis.comparisons.comparisons)
    assert max(map(len, [*shown, *bundle_lines(read_pair(run, None, None), 5)])) <= WIDTH


def test_columns_that_do_not_fit_go_under_the_first_part_and_keep_their_digits() -> None:
    cells = ["a-task", *[f"-1.23e-{100 + column}" for column in range(12)]]
    lines = list(table(["task", *[f"c{column}" for column in range(12)]], [cells]))
    assert max(map(len, lines)) <= WIDTH
    assert all(any(cell in line for line in lines) for cell in cells[1:])
    assert sum(line.startswith("a-task") for line in lines) == len(lines) // 2 > 1
