"""Laws of the analysis: each test quotes the sentence that it checks."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labaudit.analysis.effects.families import Compared
from labaudit.analysis.effects.plan import AnalysisSettings, MetricPlan
from labaudit.analysis.statistics import lattice, mcnemar, sign_flips
from labaudit.analysis.statistics.corrections import benjamini_hochberg, holm
from labaudit.analysis.statistics.paired_proportions import (
    PairedTable,
    bonett_price_interval,
    newcombe_interval,
    tango_interval,
)
from labaudit.analysis.statistics.pass_k import task_pass_at_k, task_pass_hat_k
from labaudit.analysis.statistics.resample_counts import Resampler
from labaudit.analysis.trials.canonical_text import number_text, scalar_text
from labaudit.analysis.trials.rows import TrialRow
from labaudit.analysis.trials.table import table_of_rows
from labaudit.core.canonical import canonical_bytes
from labaudit.records.comparisons import Comparison

SUCCESS = MetricPlan("success", "binary", "higher", "primary", "risk_diff", "evaluator:x", None)
COST = MetricPlan("cost", "continuous", "lower", "secondary", "mean_diff", "harness", None)
PLAN = AnalysisSettings(
    "base", ("drop", "more"), (SUCCESS, COST), "paired_drop", "auto", 0.95, 200,
    {"primary": "holm", "secondary": "bh"}, "tasks_like_these", None, 7, 2,
)  # fmt: skip
SIZES = st.integers(0, 40)
TABLES = st.builds(PairedTable, SIZES, SIZES, SIZES, SIZES).filter(lambda table: table.n > 0)
LISTS_OF_P = st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=20)


@st.composite
def trial_rows(draw: st.DrawFn) -> list[TrialRow]:
    """A run of up to eight tasks, three arms and two replicates, with holes and odd values."""
    rows: list[TrialRow] = []
    for task in range(draw(st.integers(1, 8))):
        for repl in range(2):
            for variant in ("base", "drop", "more"):
                status = draw(st.sampled_from(["included"] * 8 + ["lost", "excluded"]))
                metrics = {
                    "success": draw(st.sampled_from([0, 1, 1, 0, True, None, "yes", 2])),
                    "cost": draw(st.one_of(st.floats(-1e6, 1e6), st.integers(-5, 5), st.none())),
                }
                rows.append(
                    TrialRow(len(rows), f"{variant}.{task}.{repl}", variant, f"t{task}", repl, status, metrics=metrics)
                )
    return rows


def compared(rows: list[TrialRow], plan: AnalysisSettings = PLAN) -> list[Comparison]:
    return Compared(table_of_rows(rows, plan.metric_types), plan).comparisons


def as_text(comparisons: list[Comparison]) -> list[bytes]:
    return [one.to_bytes() for one in comparisons]


@settings(max_examples=40, deadline=None)
@given(trial_rows(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(rows: list[TrialRow], random) -> None:  # type: ignore[no-untyped-def]
    """'The same input gives byte-identical output files, whatever the order of trials on disk.'"""
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert as_text(compared(rows)) == as_text(compared(shuffled))


@settings(max_examples=60, deadline=None)
@given(trial_rows(), st.sampled_from(["paired_drop", "treat_as_failure", "paired_impute"]))
def test_no_result_has_a_zero_width_interval_or_lacks_a_reason(rows: list[TrialRow], policy: str) -> None:
    """'A labelled result or a clear error; never a zero-width interval, a NaN on a page or a silent drop.'"""
    plan = replace(PLAN, missingness=policy)  # type: ignore[arg-type]
    for one in compared(rows, plan):
        for interval in (one.interval, one.percentile_interval):
            assert interval.reason is not None or (interval.low or 0) < (interval.high or 0)
        assert (one.estimate is None) == (one.reason is not None)
        assert (one.p.value is None) == (one.p.reason is not None)
        for arm in (one.arms.baseline, one.arms.variant):
            causes = arm.missing_by_cause
            total = causes.missing + causes.error + causes.absent + causes.invalid + causes.nan
            assert arm.valid + arm.missing == arm.scheduled
            assert total == arm.missing


@settings(max_examples=40, deadline=None)
@given(trial_rows())
def test_swapping_the_arms_turns_the_effect_around(rows: list[TrialRow]) -> None:
    """'D_i = difference of task means, variant minus baseline.'"""
    plan = replace(PLAN, variants=("drop",))
    other = replace(PLAN, baseline="drop", variants=("base",))
    for forth, back in zip(compared(rows, plan), compared(rows, other), strict=True):
        assert (forth.estimate is None) == (back.estimate is None)
        if forth.estimate is None or back.estimate is None:
            continue
        assert forth.estimate == pytest.approx(-back.estimate, abs=1e-9)
        assert forth.p.value == pytest.approx(back.p.value, abs=1e-12)
        if forth.interval.low is not None and back.interval.high is not None:
            assert forth.interval.low == pytest.approx(-back.interval.high, rel=1e-6, abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(trial_rows())
def test_another_variant_changes_the_family_and_nothing_else(rows: list[TrialRow]) -> None:
    """'Holm over primary metrics x variants: the family is fixed in the signed plan.'"""
    alone = {one.id: one for one in compared(rows, replace(PLAN, variants=("drop",)))}
    together = {one.id: one for one in compared(rows)}
    for name, one in alone.items():
        both = together[name]
        assert (one.estimate, one.interval, one.p.value) == (both.estimate, both.interval, both.p.value)
        assert both.p.family_size == 2 * (one.p.family_size or 0)
        if one.p.adjusted is not None:
            assert both.p.adjusted >= one.p.adjusted


@given(TABLES)
def test_paired_intervals_hold_their_estimate_and_mirror(table: PairedTable) -> None:
    """'Tango score': an interval for the difference of two paired proportions, in [-1, 1]."""
    mirrored = PairedTable(table.both, table.lost, table.gained, table.neither)
    low, high = tango_interval(table)
    assert -1 <= low <= table.difference <= high <= 1
    assert low < high
    assert tango_interval(mirrored) == pytest.approx((-high, -low), abs=1e-9)
    for method in (newcombe_interval, bonett_price_interval):
        low, high = method(table)
        assert -1 <= low < high <= 1
        assert method(mirrored) == pytest.approx((-high, -low), abs=1e-9)


@given(st.lists(st.integers(-6, 6), max_size=12))
def test_sign_flips_by_convolution_equal_those_by_enumeration(values: list[int]) -> None:
    """'Exact sign-flip by convolution.'"""
    multiples = np.array(values, dtype=np.int64)
    enumerated = sign_flips.sign_flip_p(multiples.astype(np.float64), Resampler(1, 10))[0]
    assert lattice.sign_flip_p(multiples) == pytest.approx(enumerated, abs=1e-12)


@given(st.integers(0, 60), st.integers(0, 60))
def test_one_replicate_makes_the_sign_flip_test_mcnemars(gained: int, lost: int) -> None:
    """'risk_diff, one replicate: exact McNemar' is the sign flip of +1, -1 and 0."""
    multiples = np.array([1] * gained + [-1] * lost + [0, 0], dtype=np.int64)
    assert lattice.sign_flip_p(multiples) == pytest.approx(mcnemar.exact_p(gained, lost), rel=1e-9)


@given(LISTS_OF_P)
def test_corrections_never_lower_a_p_value_and_keep_the_order(p: list[float | None]) -> None:
    """'A missing result never makes the others look better.'"""
    for method in (holm, benjamini_hochberg):
        adjusted = method(p)
        for raw, found in zip(p, adjusted, strict=True):
            assert (raw is None) == (found is None)
            assert raw is None or found is None or raw <= found + 1e-15 <= 1 + 2e-15
        known = sorted((a, b) for a, b in zip(p, adjusted, strict=True) if a is not None and b is not None)
        assert [b for _, b in known] == sorted(b for _, b in known)
    assert all(a >= b - 1e-15 for a, b in zip(_known(holm(p)), _known(benjamini_hochberg(p)), strict=True))


def _known(values: list[float | None]) -> list[float]:
    return [value for value in values if value is not None]


@given(st.integers(1, 30), st.data())
def test_pass_at_k_rises_and_pass_hat_k_falls_with_k(n: int, data: st.DataObject) -> None:
    """'pass@k and pass^k (unbiased; null when replicates < k).'"""
    c = data.draw(st.integers(0, n))
    at, hat = ([f(n, c, k) for k in range(1, n + 1)] for f in (task_pass_at_k, task_pass_hat_k))
    assert at == sorted(at)
    assert hat == sorted(hat, reverse=True)
    assert at[0] == hat[0] == pytest.approx(c / n)
    assert all(hat[k - 1] == 1 - task_pass_at_k(n, n - c, k) for k in range(1, n + 1))


@given(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**53) + 1, 2**53 - 1)))
def test_numbers_are_written_as_rfc_8785_says(value: float) -> None:
    """'Every JSON file is canonical JSON bytes (RFC 8785)': the fast writer agrees with the plain one."""
    assert number_text(value).encode() == canonical_bytes(value)


@given(
    st.dictionaries(
        st.text(max_size=6).filter(lambda name: not any(0xD800 <= ord(char) < 0xE000 for char in name)),
        st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.floats(-1e9, 1e9), st.just("text \u2028 \x01")),
        max_size=5,
    ),
    st.text(min_size=1, max_size=6),
)
def test_a_row_is_canonical_json(metrics: dict[str, object], task: str) -> None:
    """'trials.parquet is a derived index with per-row digests': the digest is over canonical bytes."""
    row = TrialRow(3, "x", "base", task, 0, "included", metrics=metrics, missing=dict.fromkeys(metrics, "nan"))
    assert canonical_bytes(json.loads(row.canonical())) == row.canonical().encode()
    assert scalar_text(0.5) == "0.5"


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=12), st.integers(1, 4))
def test_a_lattice_is_only_claimed_when_all_values_lie_on_it(values: list[float], replicates: int) -> None:
    """'For lattice data it is computed exactly': nothing is rounded onto a lattice that it does not lie on."""
    found = lattice.find_lattice(values, replicates)
    if found is not None:
        back = found.multiples / found.per_one
        assert np.allclose(back, values, rtol=1e-9, atol=1e-9)
        low, high = lattice.percentile_interval(found, 0.95)
        assert min(values) - 1e-6 <= low <= high <= max(values) + 1e-6
        assert math.isfinite(low)
