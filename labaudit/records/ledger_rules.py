"""Numbered rules of the files that the runner writes: their parts must agree with each other.

F1  paths_stay_in_their_folder           manifest_v1, trial_record_v1
F2  files_are_sorted_and_named_once      manifest_v1, trial_record_v1
T1  a_lost_trial_claims_nothing          trial_record_v1
I1  totals_are_counted_from_rows         inclusion_v1
I2  rows_stand_in_schedule_order         inclusion_v1
K1  missing_metrics_have_no_value        metrics_v1
K2  self_reported_is_what_the_harness_said  metrics_v1
G1  no_grade_stands_above_its_caps       grades_v1
R1  the_baseline_is_the_first_variant    resolved_experiment_v0_3
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from labaudit.records.finding import Finding, json_path
from labaudit.records.grades import SCALES


def paths_stay_in_their_folder(value: Any) -> Iterator[Finding]:
    """F1: relative, with no empty, `.` or `..` part, no backslash and no control character."""
    for index, path in enumerate(_paths(value)):
        if not is_safe_path(path):
            yield Finding(f"$.files[{index}].path", f"{path!r} is no plain relative path", "F1")


def files_are_sorted_and_named_once(value: Any) -> Iterator[Finding]:
    """F2: one order, so that one content has one form; one entry per path."""
    paths = _paths(value)
    for index in range(1, len(paths)):
        if paths[index] == paths[index - 1]:
            yield Finding(f"$.files[{index}].path", f"{paths[index]!r} is listed twice", "F2")
        elif paths[index] < paths[index - 1]:
            yield Finding(f"$.files[{index}].path", f"{paths[index]!r} is out of order", "F2")


def is_safe_path(path: str) -> bool:
    """Whether a path of a listing stays below the folder it is listed for, on every system."""
    if not path or "\\" in path or any(ord(char) < 32 or ord(char) == 127 for char in path):
        return False
    return all(part not in ("", ".", "..") for part in path.split("/"))


def a_lost_trial_claims_nothing(value: Any) -> Iterator[Finding]:
    """T1: lost means no outcome; completed means an outcome, a start and an end, and attempts enough."""
    if _get(value, "status") == "lost":
        if _get(value, "outcome") is not None:
            yield Finding("$.outcome", "a lost trial has no outcome", "T1")
    elif _get(value, "status") == "completed":
        for key in ("outcome", "started_at", "ended_at"):
            if _get(value, key) is None:
                yield Finding(f"$.{key}", f"a completed trial has {key}", "T1")
    attempt, attempts = _get(value, "attempt"), _get(value, "attempts")
    if isinstance(attempt, int) and isinstance(attempts, int) and attempt > attempts:
        yield Finding("$.attempts", f"attempt {attempt} of only {attempts}", "T1")


def totals_are_counted_from_rows(value: Any) -> Iterator[Finding]:
    """I1: a total that disagrees with its rows is a false statement about them."""
    rows = _list(_get(value, "rows"))
    counted = Counter(_get(row, "status") for row in rows)
    truth = {"scheduled": len(rows), **{name: counted[name] for name in ("included", "excluded", "lost")}}
    for name, number in truth.items():
        told = _get(_get(value, "totals"), name)
        if told != number:
            yield Finding(f"$.totals.{name}", f"says {told!r}, the rows say {number}", "I1")


def rows_stand_in_schedule_order(value: Any) -> Iterator[Finding]:
    """I2: row n is scheduled trial n, and no trial has two rows."""
    seen: set[Any] = set()
    for place, row in enumerate(_list(_get(value, "rows"))):
        trial_id = _get(row, "trial_id")
        if _get(row, "index") != place:
            yield Finding(f"$.rows[{place}].index", f"row {place} has index {_get(row, 'index')!r}", "I2")
        if isinstance(trial_id, str) and trial_id in seen:
            yield Finding(f"$.rows[{place}].trial_id", f"{trial_id!r} has two rows", "I2")
        seen.add(trial_id if isinstance(trial_id, str) else None)


def missing_metrics_have_no_value(value: Any) -> Iterator[Finding]:
    """K1: a metric is measured or missing with a cause, never both and never neither."""
    metrics, missing = _dict(_get(value, "metrics")), _dict(_get(value, "missing"))
    for name in missing:
        if metrics.get(name) is not None:
            yield Finding(json_path(("missing", name)), f"{name!r} is missing and has a value", "K1")
    for name, number in metrics.items():
        if number is None and name not in missing:
            yield Finding(json_path(("metrics", name)), f"{name!r} is null without a cause", "K1")


def self_reported_is_what_the_harness_said(value: Any) -> Iterator[Finding]:
    """K2: exactly the metrics whose source is the harness are self-reported."""
    sources = _dict(_get(value, "sources"))
    told = {name for name in _list(_get(value, "self_reported")) if isinstance(name, str)}
    for name in sorted(told ^ {name for name, source in sources.items() if source == "harness"}):
        source = sources.get(name)
        verb = "is listed" if name in told else "is not listed"
        yield Finding("$.self_reported", f"{name!r} {verb} as self-reported, its source is {source!r}", "K2")


def no_grade_stands_above_its_caps(value: Any) -> Iterator[Finding]:
    """G1: the lowest cap wins."""
    for name, scale in SCALES.items():
        grade = _get(value, name)
        reached = _rank(scale, _get(grade, "value"))
        for index, cap in enumerate(_list(_get(grade, "caps"))):
            limit = _rank(scale, _get(cap, "to"))
            if reached is not None and limit is not None and reached < limit:
                told = f"{_get(grade, 'value')} stands above the cap to {_get(cap, 'to')}"
                yield Finding(f"$.{name}.caps[{index}]", f"{told} by rule {_get(cap, 'rule')}", "G1")


def the_baseline_is_the_first_variant(value: Any) -> Iterator[Finding]:
    """R1: variants are the baseline and then the plan in its order, each id once."""
    ids = [_get(variant, "id") for variant in _list(_get(value, "variants"))]
    wanted = [_get(_get(value, "baseline"), "id"), *_list(_get(value, "variant_plan"))]
    if ids != wanted:
        yield Finding("$.variants", f"are {ids}, should be {wanted}", "R1")
    for name, number in Counter(str(item) for item in ids).items():
        if number > 1:
            yield Finding("$.variants", f"{name!r} stands there {number} times", "R1")


def _rank(scale: tuple[str, ...], value: Any) -> int | None:
    return scale.index(value) if value in scale else None


def _paths(value: Any) -> list[str]:
    found = [_get(entry, "path") for entry in _list(_get(value, "files"))]
    return [path if isinstance(path, str) else "" for path in found]


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


RULES: dict[str, tuple[Callable[[Any], Iterator[Finding]], ...]] = {
    "manifest_v1": (paths_stay_in_their_folder, files_are_sorted_and_named_once),
    "trial_record_v1": (paths_stay_in_their_folder, files_are_sorted_and_named_once, a_lost_trial_claims_nothing),
    "inclusion_v1": (totals_are_counted_from_rows, rows_stand_in_schedule_order),
    "metrics_v1": (missing_metrics_have_no_value, self_reported_is_what_the_harness_said),
    "grades_v1": (no_grade_stands_above_its_caps,),
}
