"""Numbered rules of the analysis files: what is not there says why, and nothing claims perfect knowledge.

Q1  an_interval_has_a_width_or_a_reason   comparisons_v1, analysis_summary_v1
Q2  a_number_that_is_missing_has_a_reason comparisons_v1, analysis_summary_v1
Q3  a_value_that_is_missing_has_a_cause   paired_diff_v1
Q4  a_check_without_evidence_has_no_p     suspects_v1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from labaudit.records.finding import Finding


def an_interval_has_a_width_or_a_reason(value: Any) -> Iterator[Finding]:
    """Q1: both ends and the lower one first, or both null with the reason beside them."""
    for path, interval in _intervals(value):
        low, high = interval.get("low"), interval.get("high")
        if isinstance(low, (int, float)) and isinstance(high, (int, float)):
            if low >= high:
                yield Finding(path, f"runs from {low} to {high}: no interval has zero width", "Q1")
        elif low is not None or high is not None:
            yield Finding(path, "has one end", "Q1")
        elif interval.get("reason") is None:
            yield Finding(path, "has no ends and no reason why", "Q1")


def a_number_that_is_missing_has_a_reason(value: Any) -> Iterator[Finding]:
    """Q2: a comparison without an estimate, and a p-value, a bound or a detectable effect that is null."""
    for path, one in _comparisons(value):
        if one.get("estimate") is None and one.get("reason") is None:
            yield Finding(f"{path}.estimate", "is null without a reason", "Q2")
        if (one.get("status") == "not_estimable") != (one.get("reason") is not None):
            yield Finding(f"{path}.status", "and reason do not fit each other", "Q2")
        for key, number in (("p", "value"), ("manski_bounds", "low"), ("minimal_detectable_effect", "value")):
            part = one.get(key)
            if isinstance(part, dict) and part.get(number) is None and part.get("reason") is None:
                yield Finding(f"{path}.{key}.{number}", "is null without a reason", "Q2")


def a_value_that_is_missing_has_a_cause(value: Any) -> Iterator[Finding]:
    """Q3: a side has a value or the cause why not, and a difference only where both have one."""
    if not isinstance(value, dict):
        return
    for side in ("baseline", "variant"):
        if (value.get(f"{side}_value") is None) != (value.get(f"{side}_cause") is not None):
            yield Finding(f"$.{side}_cause", "stands exactly where there is no value", "Q3")
    both = value.get("baseline_value") is not None and value.get("variant_value") is not None
    if both != (value.get("difference") is not None):
        yield Finding("$.difference", "stands exactly where both sides have a value", "Q3")


def a_check_without_evidence_has_no_p(value: Any) -> Iterator[Finding]:
    """Q4: where the evidence is said to be insufficient, nothing was tested."""
    found = value.get("suspects") if isinstance(value, dict) else None
    for index, one in enumerate(found if isinstance(found, list) else ()):
        if isinstance(one, dict) and one.get("status") == "insufficient_evidence" and one.get("p") is not None:
            yield Finding(f"$.suspects[{index}].p", "is given where the evidence is said to be insufficient", "Q4")


def _comparisons(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The comparisons of either document: whole ones, or their headlines."""
    for key in ("comparisons", "primary"):
        listed = value.get(key) if isinstance(value, dict) else None
        for index, one in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(one, dict):
                yield f"$.{key}[{index}]", one


def _intervals(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, one in _comparisons(value):
        holders = [(path, one)]
        estimands = one.get("estimands")
        if isinstance(estimands, dict):
            read = [(f"{path}.estimands.{name}", held) for name, held in estimands.items()]
            holders += [(place, held) for place, held in read if isinstance(held, dict)]
        for place, holder in holders:
            for key in ("interval", "percentile_interval"):
                if isinstance(holder.get(key), dict):
                    yield f"{place}.{key}", holder[key]


RULES: dict[str, tuple[Callable[[Any], Iterator[Finding]], ...]] = {
    "comparisons_v1": (an_interval_has_a_width_or_a_reason, a_number_that_is_missing_has_a_reason),
    "analysis_summary_v1": (an_interval_has_a_width_or_a_reason, a_number_that_is_missing_has_a_reason),
    "paired_diff_v1": (a_value_that_is_missing_has_a_cause,),
    "suspects_v1": (a_check_without_evidence_has_no_p,),
}
