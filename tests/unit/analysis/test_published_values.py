"""Numbers that others have printed, reproduced to their printed digits; each test names where they stand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from labaudit.analysis.statistics import lattice, mcnemar
from labaudit.analysis.statistics.bootstrap import UnitSums, bootstrap_one
from labaudit.analysis.statistics.clustered import clustered_mean
from labaudit.analysis.statistics.corrections import benjamini_hochberg, holm
from labaudit.analysis.statistics.paired_proportions import (
    PairedTable,
    bonett_price_interval,
    newcombe_interval,
    tango_interval,
    wilson_interval,
)
from labaudit.analysis.statistics.pass_k import pass_k, task_pass_at_k
from labaudit.analysis.statistics.resample_counts import Resampler
from labaudit.analysis.statistics.unpaired import newcombe_independent

PUBLISHED = Path(__file__).parent / "published"
# Fagerland, Lydersen, Laake, Statistical Analysis of Contingency Tables (2017), chapter 8: complete response before and
# after consolidation therapy (Cavo et al. 2012); values as printed by the book's R package `contingencytables`.
CAVO = PairedTable(both=59, gained=6, lost=16, neither=80)


@pytest.mark.parametrize(
    ("method", "low", "high"),
    [
        (tango_interval, -0.1240, -0.0054),
        (newcombe_interval, -0.1186, -0.0046),
        (bonett_price_interval, -0.1195, -0.0032),
    ],
)
def test_intervals_for_the_book_table_59_6_16_80(method, low: float, high: float) -> None:  # type: ignore[no-untyped-def]
    found = method(CAVO)
    assert (round(found[0], 4), round(found[1], 4)) == (low, high)
    assert round(CAVO.difference, 4) == -0.0621


def test_exact_and_mid_p_mcnemar_for_the_book_table() -> None:
    assert round(mcnemar.exact_p(6, 16), 6) == 0.052479
    assert round(mcnemar.mid_p(6, 16), 6) == 0.034690


def test_mcnemar_for_airway_responsiveness() -> None:
    # Fagerland, Lydersen, Laake, BMC Medical Research Methodology 13:91 (2013), the table 1, 1, 7, 12 of Bentur 2009.
    assert round(mcnemar.exact_p(1, 7), 3) == 0.070
    assert round(mcnemar.mid_p(1, 7), 3) == 0.039


def test_intervals_where_all_pairs_say_the_same() -> None:
    # The same R package on tables with three discordant pairs and nothing else, and on two concordant pairs.
    assert [round(end, 4) for end in tango_interval(PairedTable(0, 3, 0, 0))] == [-0.1230, 1.0]
    assert [round(end, 4) for end in tango_interval(PairedTable(0, 0, 3, 0))] == [-1.0, 0.1230]
    assert [round(end, 4) for end in newcombe_interval(PairedTable(1, 0, 0, 1))] == [-0.5734, 0.5734]


def test_newcombes_own_example_of_two_independent_proportions() -> None:
    # Newcombe, Statistics in Medicine 17 (1998) 873-890, table II, method 10: 56/70 - 48/80, and 10/10 - 0/10.
    assert [round(end, 4) for end in newcombe_independent(56, 70, 48, 80)] == [0.0524, 0.3339]
    assert [round(end, 4) for end in newcombe_independent(10, 10, 0, 10)] == [0.6075, 1.0]


def test_wilsons_interval_as_newcombe_prints_it() -> None:
    # Newcombe, Statistics in Medicine 17 (1998) 857-872, table I, method 3: 81/263, 15/148, 0/20, 1/29.
    for successes, n, low, high in [
        (81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718),
    ]:  # fmt: skip
        assert [round(end, 4) for end in wilson_interval(successes, n)] == [low, high]


def r_uniforms(seed: int) -> Iterator[float]:
    """R's default generator: a Mersenne Twister whose state is filled by a linear congruential one."""
    state = []
    for step in range(675):
        seed = (69069 * seed + 1) & 0xFFFFFFFF
        if step >= 50:
            state.append(seed)
    bits = np.random.MT19937()
    bits.state = {"bit_generator": "MT19937", "state": {"key": np.array(state[1:], dtype=np.uint32), "pos": 624}}
    while True:
        yield int(bits.random_raw()) * 2.3283064365386963e-10


def r_documentation_p_values() -> list[float]:
    """set.seed(123); x <- rnorm(50, mean = c(rep(0, 25), rep(3, 25))); p <- 2 * pnorm(sort(-abs(x)))."""
    uniform, big, normal = r_uniforms(123), 134217728, NormalDist()
    draws = [normal.inv_cdf((int(big * next(uniform)) + next(uniform)) / big) for _ in range(50)]
    x = [draw + (0.0 if place < 25 else 3.0) for place, draw in enumerate(draws)]
    return [2 * normal.cdf(value) for value in sorted(-abs(value) for value in x)]


# The output of help(p.adjust)'s example, as R's own reference output of the stats package prints it.
R_P = """
0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.001 0.002 0.003 0.004 0.005 0.007 0.007 0.009 0.009 0.011
0.021 0.049 0.061 0.063 0.074 0.083 0.086 0.119 0.189 0.206 0.221 0.286 0.305 0.466 0.483 0.492 0.532 0.575 0.578 0.619
0.636 0.645 0.656 0.689 0.719 0.818 0.827 0.897 0.912 0.944"""
R_HOLM = """
0.000 0.001 0.001 0.005 0.005 0.006 0.006 0.007 0.009 0.016 0.024 0.063 0.125 0.131 0.189 0.239 0.240 0.291 0.301 0.350
0.635""" + 29 * " 1.000"
R_BH = """
0.000 0.000 0.000 0.001 0.001 0.001 0.001 0.001 0.001 0.002 0.003 0.007 0.013 0.013 0.017 0.021 0.021 0.024 0.025 0.028
0.050 0.112 0.130 0.130 0.148 0.159 0.160 0.213 0.326 0.343 0.356 0.446 0.462 0.684 0.684 0.684 0.719 0.741 0.741 0.763
0.763 0.763 0.763 0.782 0.799 0.880 0.880 0.930 0.930 0.944"""


def three_digits(values: list[float | None]) -> list[str]:
    return [f"{value:.3f}" for value in values if value is not None]


def test_the_example_of_rs_p_adjust() -> None:
    p = r_documentation_p_values()
    assert three_digits(list(p)) == R_P.split()
    assert three_digits(holm(p)) == R_HOLM.split()
    assert three_digits(benjamini_hochberg(p)) == R_BH.split()


# scipy's own test of its bootstrap: these 16 numbers against R's boot with a million resamples.
BOOT_DATA = np.array([10, 12, 12.5, 12.5, 13.9, 15, 21, 22, 23, 34, 50, 81, 89, 121, 134, 213])


@pytest.mark.parametrize(
    ("method", "low", "high"),
    [("basic_interval", 23.77, 79.12), ("percentile_interval", 28.86, 84.21), ("bca_interval", 32.31, 91.43)],
)
def test_bootstrap_intervals_against_rs_boot(method: str, low: float, high: float) -> None:
    found = getattr(bootstrap_one(UnitSums.of_tasks(BOOT_DATA), Resampler(20261118, 200_000)), method)(0.95)
    assert found == pytest.approx((low, high), rel=0.005)


def test_the_exact_bootstrap_of_lattice_data_against_rs_boot() -> None:
    found = lattice.find_lattice(BOOT_DATA, 1)
    assert found is not None
    assert lattice.percentile_interval(found, 0.95) == pytest.approx((28.86, 84.21), rel=0.005)
    assert lattice.basic_interval(found, 0.95) == pytest.approx((23.77, 79.12), rel=0.005)


def human_eval_estimator(n: int, c: int, k: int) -> float:
    """The numerically stable form given with HumanEval (Chen et al. 2021, figure 3)."""
    if n - c < k:
        return 1.0
    return float(1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1)))


def test_pass_at_k_is_the_human_eval_estimator() -> None:
    for n in (1, 2, 5, 10, 100, 200):
        for c in {0, 1, n // 2, n - 1, n}:
            for k in {1, min(2, n), min(10, n), n}:
                assert float(task_pass_at_k(n, c, k)) == pytest.approx(human_eval_estimator(n, c, k), abs=1e-12)


def tau_bench() -> np.ndarray:
    document = json.loads((PUBLISHED / "tau_bench_airline_gpt4o.json").read_bytes())
    return np.array([[int(digit) for digit in task] for task in document["rewards"]], dtype=float)


def test_pass_hat_k_of_tau_bench_airline_gpt_4o() -> None:
    # Yao et al. 2024, tau-bench: pass^1..4 of gpt-4o with function calling in the airline domain.
    rewards = tau_bench()
    totals, successes = [4] * len(rewards), rewards.sum(axis=1).astype(int).tolist()
    found = [pass_k(totals, successes, k).pass_hat_k for k in (1, 2, 3, 4)]
    assert three_digits(found) == ["0.420", "0.273", "0.220", "0.200"]
    assert pass_k(totals, successes, 5).pass_hat_k is None


def test_clustered_and_naive_errors_of_tau_bench_airline() -> None:
    rewards = tau_bench()
    found = clustered_mean(rewards.reshape(-1), np.repeat(np.arange(50), 4))
    assert found is not None
    assert (round(found.mean, 3), round(found.clustered_se or 0, 4), round(found.naive_se or 0, 4)) == (
        0.420, 0.0522, 0.0350,
    )  # fmt: skip
