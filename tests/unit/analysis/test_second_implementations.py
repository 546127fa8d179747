"""The same numbers by scipy, statsmodels and pandas: code that shares nothing with ours."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import statsmodels.api as sm
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from labaudit.analysis import analyse_run
from labaudit.analysis.statistics import lattice, mcnemar, order_statistics, sign_flips, unpaired
from labaudit.analysis.statistics.bootstrap import UnitSums, bootstrap_one
from labaudit.analysis.statistics.bounds import differential_missingness_p
from labaudit.analysis.statistics.clustered import clustered_mean
from labaudit.analysis.statistics.corrections import benjamini_hochberg, holm
from labaudit.analysis.statistics.paired_proportions import PairedTable, tango_interval, wilson_interval
from labaudit.analysis.statistics.power import minimal_detectable_effect
from labaudit.analysis.statistics.resample_counts import Resampler
from labaudit.analysis.statistics.spearman import spearman_many
from labaudit.analysis.statistics.within_tasks import within_task_effect
from tests.unit.analysis.made_up import COST, SUCCESS, Trial, write_run

STREAM = np.random.default_rng(20261118)


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (1, 0), (3, 9), (40, 61), (1200, 1100)])
def test_mcnemar_by_statsmodels(gained: int, lost: int) -> None:
    expected = statsmodels_mcnemar([[5, gained], [lost, 7]], exact=True).pvalue if gained + lost else 1.0
    assert mcnemar.exact_p(gained, lost) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n", [1, 5, 64])
def test_wilson_by_statsmodels(n: int) -> None:
    for successes in range(n + 1):
        assert wilson_interval(successes, n, 0.9) == pytest.approx(
            proportion_confint(successes, n, alpha=0.1, method="wilson"), abs=1e-12
        )


def test_newcombe_for_independent_arms_by_statsmodels() -> None:
    expected = confint_proportions_2indep(17, 40, 9, 33, method="newcomb", compare="diff")
    assert unpaired.newcombe_independent(17, 40, 9, 33) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_tango_solves_its_own_score_equation(seed: int) -> None:
    """At each end the score test of that difference, its nuisance fitted by scipy, gives exactly p = 0.05."""
    stream = np.random.default_rng(seed)
    table = PairedTable(*(int(count) for count in stream.integers(1, 30, size=4)))
    for end in tango_interval(table):
        result = scipy.optimize.minimize_scalar(
            lambda lost, end=end: -_log_likelihood(table, lost, end),
            bounds=(max(0.0, -end) + 1e-12, (1 - end) / 2 - 1e-12), method="bounded", options={"xatol": 1e-13},
        )  # fmt: skip
        variance = table.n * (2 * result.x + end * (1 - end))
        z = (table.gained - table.lost - table.n * end) / math.sqrt(variance)
        assert abs(z) == pytest.approx(1.959964, abs=1e-4)


def _log_likelihood(table: PairedTable, lost: float, difference: float) -> float:
    gained = lost + difference
    rest = 1 - lost - gained
    if gained <= 0 or lost <= 0 or rest <= 0:
        return -math.inf
    same = table.both + table.neither
    return table.gained * math.log(gained) + table.lost * math.log(lost) + same * math.log(rest)


@pytest.mark.parametrize("replicates", [1, 3])
def test_exact_sign_flips_by_scipys_permutation_test(replicates: int) -> None:
    values = STREAM.integers(-replicates, replicates + 1, size=11) / replicates
    found = lattice.find_lattice(values, replicates)
    assert found is not None
    expected = scipy.stats.permutation_test(
        (values,), lambda x, axis: x.sum(axis=axis), permutation_type="samples", n_resamples=np.inf
    ).pvalue
    assert lattice.sign_flip_p(found.multiples) == pytest.approx(expected, abs=1e-12)
    assert sign_flips.sign_flip_p(values, Resampler(1, 10))[0] == pytest.approx(expected, abs=1e-12)


def test_drawn_sign_flips_come_close_to_the_exact_ones() -> None:
    multiples = STREAM.integers(-2, 4, size=60)
    exact = lattice.sign_flip_p(multiples)
    drawn, method = sign_flips.sign_flip_p(multiples.astype(float), Resampler(3, 40_000))
    assert method == "sign_flip_monte_carlo"
    assert drawn == pytest.approx(exact, abs=5 * math.sqrt(exact / 40_000))


def test_the_exact_bootstrap_is_the_enumeration_of_all_resamples() -> None:
    values = np.array([-1.0, 0.0, 0.5, 1.0, 1.0])
    found = lattice.find_lattice(values, 2)
    assert found is not None
    means = np.sort([np.mean(choice) for choice in product(values, repeat=5)])
    cumulative = np.arange(1, len(means) + 1) / len(means)
    expected = [float(means[np.searchsorted(cumulative, p - 1e-12)]) for p in (0.05, 0.95)]
    assert lattice.percentile_interval(found, 0.9) == pytest.approx(expected, abs=1e-12)


def test_the_studentised_bootstrap_by_a_plain_loop() -> None:
    values = STREAM.exponential(size=25)
    ours = bootstrap_one(UnitSums.of_tasks(values), Resampler(5, 20_000)).symmetric_interval(0.95)
    stream = np.random.default_rng(8)
    draws = stream.choice(values, size=(20_000, 25))
    t = np.abs(draws.mean(axis=1) - values.mean()) / (draws.std(axis=1, ddof=1) / 5)
    half = np.quantile(t, 0.95) * values.std(ddof=1) / 5
    assert ours == pytest.approx((values.mean() - half, values.mean() + half), rel=0.03)


def test_cluster_robust_errors_by_statsmodels() -> None:
    clusters = np.repeat(np.arange(30), STREAM.integers(1, 6, size=30))
    values = STREAM.normal(size=len(clusters)) + STREAM.normal(size=30)[clusters]
    fit = sm.OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    found = clustered_mean(values, clusters)
    assert found is not None
    assert found.clustered_se == pytest.approx(fit.bse[0], rel=1e-10)
    assert found.naive_se == pytest.approx(scipy.stats.sem(values), rel=1e-10)


def test_corrections_by_statsmodels() -> None:
    p = STREAM.random(23) ** 3
    assert holm(p.tolist()) == pytest.approx(multipletests(p, method="holm")[1])
    assert benjamini_hochberg(p.tolist()) == pytest.approx(multipletests(p, method="fdr_bh")[1])


def test_welch_fisher_and_spearman_by_scipy() -> None:
    x, y = STREAM.normal(1, 2, size=18), STREAM.normal(size=31)
    expected = scipy.stats.ttest_ind(x, y, equal_var=False)
    found = unpaired.welch(UnitSums.of_tasks(x), UnitSums.of_tasks(y))
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(0.95)), rel=1e-9)
    fisher = scipy.stats.fisher_exact([[4, 16], [1, 29]]).pvalue
    assert unpaired.fisher_p(4, 20, 1, 30) == differential_missingness_p(4, 20, 1, 30) == pytest.approx(fisher)
    a, b = STREAM.integers(0, 5, size=40).astype(float), STREAM.normal(size=40)
    (rho,) = spearman_many([(a, b)], Resampler(1, 999))
    assert rho is not None
    assert rho.rho == pytest.approx(scipy.stats.spearmanr(a, b).statistic, abs=1e-12)
    assert rho.p == pytest.approx(scipy.stats.spearmanr(a, b).pvalue, abs=0.06)


@pytest.mark.parametrize("n", [6, 7, 20, 51])
def test_the_median_interval_has_the_level_that_the_binomial_gives(n: int) -> None:
    values = STREAM.normal(size=n)
    found = order_statistics.median_interval(values, 0.95)
    depth = int(np.searchsorted(np.sort(values), found.low)) + 1
    assert found.high == np.sort(values)[n - depth]
    assert found.achieved_level == pytest.approx(1 - 2 * scipy.stats.binom.cdf(depth - 1, n, 0.5))
    assert 1 - 2 * scipy.stats.binom.cdf(depth, n, 0.5) < 0.95
    assert order_statistics.sign_p(values) == pytest.approx(scipy.stats.binomtest(int((values > 0).sum()), n).pvalue)


def test_the_bootstrap_of_the_median_by_drawing() -> None:
    values = STREAM.normal(size=21)
    drawn = np.median(np.random.default_rng(4).choice(values, size=(100_000, 21)), axis=1)
    expected = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf")
    assert order_statistics.bootstrap_median_interval(values, 0.95) == pytest.approx(tuple(expected))


def test_fixed_tasks_by_hand() -> None:
    variant, baseline = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[0.0, 0.0], [1.0, 0.0]])
    found = within_task_effect(variant, baseline, 0.95, 1.0)
    variances = [np.var(row, ddof=1) / 2 for row in (*variant, *baseline)]
    assert found.effect == 0.5
    assert found.standard_error == pytest.approx(math.sqrt(sum(variances)) / 2)


def test_the_detectable_effect_is_found_four_times_in_five() -> None:
    found = minimal_detectable_effect(0.1, 39, 0.95)
    assert found is not None
    power = TTestPower().power(effect_size=found / (0.1 * math.sqrt(40)), nobs=40, alpha=0.05)
    assert power == pytest.approx(0.8, abs=0.01)


def test_a_whole_run_by_pandas(tmp_path: Path) -> None:
    stream = np.random.default_rng(11)
    trials = [
        Trial(variant, f"t{task}", repl, metrics={"success": int(stream.integers(2)), "cost": stream.random()})
        for task in range(15)
        for repl in range(3)
        for variant in ("base", "drop")
    ]
    run = write_run(tmp_path, trials, metrics=(SUCCESS, COST), secondary=["cost"], replications=3)
    found = {one.metric: one for one in analyse_run(run).comparisons.comparisons}
    frame = pd.DataFrame([{"variant": t.variant, "task": t.task, **dict(t.metrics or {})} for t in trials])
    for metric in ("success", "cost"):
        means = frame.groupby(["task", "variant"])[metric].mean().unstack()
        differences = means["drop"] - means["base"]
        assert found[metric].estimate == pytest.approx(differences.mean(), abs=1e-12)
        assert found[metric].se == pytest.approx(differences.sem(), abs=1e-12)
        arm = frame[frame.variant == "drop"][metric]
        assert found[metric].arms.variant.mean == pytest.approx(arm.mean(), abs=1e-12)
    stored = pd.read_parquet(run.trials_table)
    assert stored["metric.cost"].tolist() == frame["cost"].tolist()
    pairs = pd.read_parquet(run.paired_diffs_parquet)
    lines = [json.loads(line) for line in run.paired_diffs.read_bytes().splitlines()]
    assert pairs["difference"].tolist() == [line["difference"] for line in lines]
    assert pairs[["task_id", "repl_idx", "variant", "metric"]].drop_duplicates().shape[0] == len(pairs) == 90
