"""The SWE-bench leaderboard's per-instance JSON to foreign rows, and its published figures against them.

{"leaderboards": [{"name", "results": [{"name", "resolved": percent, "per_instance_details": {...}}]}]}
{<model>: {<instance>: {"resolved", "cost", "api_calls"}}}
{<instance>: {"resolved", "cost", "api_calls"}}                 per_instance_details.json of one entry
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labaudit.importers.foreign_json import mapping, metric_value, plain, rows, text_of
from labaudit.importers.protocol import ReadOptions
from labaudit.importers.results import Cause, ForeignResults, ForeignTrial, PublishedTotal, Value, VariantInfo
from labaudit.importers.source_files import folder_above
from labaudit.importers.totals import check_mean, check_sum

_SETTINGS = ("folder", "date", "tags", "os_model", "os_system", "checked", "mini-swe-agent_version", "warning")
# The board shows percentages with two decimals.
_ROUNDED = 0.0051
Json = dict[str, Any]


def is_leaderboard(document: object) -> bool:
    """True for one of the three shapes."""
    return isinstance(document, dict) and (
        isinstance(document.get("leaderboards"), list) or _is_details(document) or _is_by_model(document)
    )


def read_leaderboard(document: Json, name: str, path: Path, options: ReadOptions, results: ForeignResults) -> None:
    """Adds every entry with per-instance details that was asked for; entries without are counted."""
    without = 0
    taken: Counter[str] = Counter()
    for called, details, entry in _entries(document, path, name):
        # Two entries of one name are two submissions: one label for both would mix their rows.
        taken[called] += 1
        label = called if taken[called] == 1 else f"{called} #{taken[called]}"
        if not options.wants(label):
            continue
        if not details:
            without += 1
            continue
        known = {key: plain(entry[key]) for key in _SETTINGS if entry.get(key) not in (None, [], "")}
        results.variants.setdefault(label, VariantInfo(label, known))
        results.trials.extend(
            _trial(label, str(instance), mapping(row), name, results) for instance, row in details.items()
        )
        results.totals.extend(_totals(entry, details, f"{name}#{label}"))
    if without:
        said = f"{without} entries of {name} publish a total without per-instance results; they are left out."
        results.note("entry_without_rows", "caution", said, where=name, count=without)


def _is_details(document: Json) -> bool:
    return bool(document) and all(isinstance(row, dict) and "resolved" in row for row in document.values())


def _is_by_model(document: Json) -> bool:
    return bool(document) and all(isinstance(group, dict) and _is_details(group) for group in document.values())


def _entries(document: Json, path: Path, name: str) -> Iterator[tuple[str, Json, Json]]:
    if isinstance(document.get("leaderboards"), list):
        for board in rows(document["leaderboards"]):
            for entry in rows(board.get("results")):
                label = f"{text_of(board.get('name')) or 'board'}: {text_of(entry.get('name')) or 'unnamed'}"
                yield label, mapping(entry.get("per_instance_details")), entry
    elif _is_details(document):
        yield folder_above(path, name, 1), document, {}
    else:
        for model, details in document.items():
            yield str(model), details, {}


def _trial(label: str, instance: str, row: Json, name: str, results: ForeignResults) -> ForeignTrial:
    results.tasks.setdefault(instance, {})
    metrics: dict[str, Value] = {}
    missing: dict[str, Cause] = {}
    resolved = row.get("resolved")
    if isinstance(resolved, bool):
        metrics["resolved"] = resolved
    else:
        missing["resolved"] = "missing" if resolved is None else "invalid"
    for metric, key in (("cost_usd", "cost"), ("api_calls", "api_calls")):
        value, cause = metric_value(row.get(key))
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            metrics[metric] = value
        else:
            missing[metric] = cause or "invalid"
    judged = "resolved" in metrics
    return ForeignTrial(
        variant=label,
        task_id=instance,
        original_id=instance,
        order=(instance,),
        outcome="missing" if not judged else "success" if resolved else "failure",
        metrics=metrics,
        missing=missing,
        error=None if judged else f"resolved is {resolved!r}"[:200],
        sources=(name,),
        facts={},
    )


def _totals(entry: Json, details: Json, where: str) -> Iterator[PublishedTotal]:
    given = [mapping(row) for row in details.values()]
    values = [float(row["resolved"]) if isinstance(row.get("resolved"), bool) else None for row in given]
    costs = [_amount(row.get("cost")) for row in given]
    calls = [_amount(row.get("api_calls")) for row in given]
    checks = (
        check_mean("resolved", where, entry.get("resolved"), values, scale=100.0, tolerance=_ROUNDED),
        check_sum("cost", where, entry.get("cost"), costs),
        check_mean("instance_cost", where, entry.get("instance_cost"), costs, tolerance=1e-6),
        check_mean("instance_calls", where, entry.get("instance_calls"), calls, tolerance=1e-6),
    )
    yield from (check for check in checks if check is not None)


def _amount(value: object) -> float | None:
    return (
        float(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15 else None
    )
