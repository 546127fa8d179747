"""Built-in evaluators: whatever an agent answers, there is a verdict and the run goes on."""

from __future__ import annotations

import pytest

from labaudit.evaluators.builtin import evaluate
from labaudit.evaluators.verdict import Verdict
from labaudit.records.resolved import ResolvedEvaluator


def _verdict(kind: str, answer: object, expected: object) -> Verdict:
    config = ResolvedEvaluator(id="judge", type=kind, metric="success", expected="expected")  # type: ignore[arg-type]
    return evaluate(config, {"expected": expected}, {"answer": answer}, "success")


NO_JSON = ("NaN", "[" * 100_000, "9007199254740993", "1e999", '"\\ud800"', '{"a": 1, "a": 2}', "{")


@pytest.mark.parametrize("answer", NO_JSON)
def test_an_answer_that_is_no_json_is_wrong_and_stops_nothing(answer: str) -> None:
    verdict = _verdict("json_equal", answer, {"a": 2})
    assert (verdict.value, verdict.cause) == (False, None)


@pytest.mark.parametrize("expected", ["NaN", "[" * 100_000, "{"])
def test_an_expectation_that_is_no_json_leaves_the_metric_missing(expected: str) -> None:
    assert _verdict("json_equal", "1", expected).cause == "invalid"


def test_json_is_compared_by_value() -> None:
    assert _verdict("json_equal", '{"b": 1.0, "a": [true]}', {"a": [True], "b": 1}).value is True
    assert _verdict("json_equal", "[1]", "[1, 2]").value is False
