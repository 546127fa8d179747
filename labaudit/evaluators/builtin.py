"""The built-in comparisons of an answer with what the task expects: one small function each."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping

from labaudit.core.canonical import canonical_bytes
from labaudit.core.strict_json import parse_json
from labaudit.errors import BadInput
from labaudit.evaluators.verdict import Cause, Verdict
from labaudit.records.resolved import ResolvedEvaluator

_SNIPPET = 200
_ABSENT = object()


def evaluate(
    config: ResolvedEvaluator, task: Mapping[str, object], output: Mapping[str, object] | None, outcome: str
) -> Verdict:
    """The verdict of one built-in evaluator on one trial."""
    if output is None or outcome in {"missing", "error"}:
        cause: Cause = "error" if outcome == "error" else "missing"
        return Verdict.missing(config.metric, cause, f"the trial's outcome is {outcome}; there is no answer to compare")
    answer = _look_up(output, config.answer or "answer")
    if answer is _ABSENT:
        return Verdict.missing(config.metric, "absent", f"trial_output.json has no {config.answer or 'answer'}")
    if config.type == "regex" and config.pattern is not None:
        expected: object = config.pattern
    else:
        expected = _look_up(task, config.expected or "expected")
        if expected is _ABSENT:
            return Verdict.missing(config.metric, "absent", f"the task has no {config.expected or 'expected'}")
    return _COMPARISONS[config.type](config, answer, expected)


def _exact_match(config: ResolvedEvaluator, answer: object, expected: object) -> Verdict:
    if isinstance(answer, str) and isinstance(expected, str):
        return _verdict(config, _text(config, answer) == _text(config, expected), answer, expected, "equal")
    return _verdict(config, _same_json(answer, expected), answer, expected, "equal")


def _contains(config: ResolvedEvaluator, answer: object, expected: object) -> Verdict:
    wanted = expected if isinstance(expected, list) else [expected]
    text = _text(config, answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False))
    return _verdict(config, all(_text(config, str(item)) in text for item in wanted), answer, expected, "contained")


def _regex(config: ResolvedEvaluator, answer: object, expected: object) -> Verdict:
    try:
        pattern = re.compile(str(expected), 0 if config.case_sensitive is not False else re.IGNORECASE)
    except re.error as error:
        return Verdict.missing(config.metric, "invalid", f"{expected!r} is no regular expression: {error}")
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return _verdict(config, pattern.search(text) is not None, answer, expected, "matched")


def _json_equal(config: ResolvedEvaluator, answer: object, expected: object) -> Verdict:
    try:
        wanted = _from_text(expected)
    except BadInput as error:
        return Verdict.missing(config.metric, "invalid", f"the task expects {_short(expected)!r}, which {error.what}")
    try:
        same = _same_json(_from_text(answer), wanted)
    except BadInput:
        # An answer that is no JSON (or has NaN, a key twice, endless brackets) is a wrong answer, not a missing one.
        same = False
    return _verdict(config, same, answer, expected, "equal as JSON")


def _numeric(config: ResolvedEvaluator, answer: object, expected: object) -> Verdict:
    want = _number(expected)
    if want is None:
        return Verdict.missing(config.metric, "invalid", f"the task expects {expected!r}, which is no number")
    got = _number(answer)
    if got is None:
        return _verdict(config, False, answer, expected, "a number within tolerance")
    close = math.isclose(got, want, rel_tol=config.rel_tolerance or 0.0, abs_tol=config.abs_tolerance or 0.0)
    return _verdict(config, close, answer, expected, "a number within tolerance")


_COMPARISONS: dict[str, Callable[[ResolvedEvaluator, object, object], Verdict]] = {
    "exact_match": _exact_match,
    "contains": _contains,
    "regex": _regex,
    "json_equal": _json_equal,
    "numeric": _numeric,
}


def _verdict(config: ResolvedEvaluator, held: bool, answer: object, expected: object, relation: str) -> Verdict:
    return Verdict(
        config.metric,
        held,
        None,
        f"the answer is {'' if held else 'not '}{relation}",
        (f"expected: {_short(expected)}", f"actual: {_short(answer)}"),
    )


def _text(config: ResolvedEvaluator, text: str) -> str:
    text = text.strip() if config.strip is not False else text
    return text if config.case_sensitive is not False else text.casefold()


def _from_text(value: object) -> object:
    return parse_json(value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else value


def _same_json(left: object, right: object) -> bool:
    return canonical_bytes(left) == canonical_bytes(right)


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _look_up(document: Mapping[str, object], dotted: str) -> object:
    if dotted in document:
        return document[dotted]
    value: object = document
    for part in dotted.split("."):
        if not isinstance(value, dict) or part not in value:
            return _ABSENT
        value = value[part]
    return value


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SNIPPET else text[:_SNIPPET] + "…"
