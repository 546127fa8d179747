"""Inspect's score values to numbers, and its published metrics to the same figures counted from samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from labaudit.importers.foreign_json import mapping, rows, text_of
from labaudit.importers.results import Cause, ForeignResults, MetricDeclaration, PublishedTotal
from labaudit.importers.totals import check_count, check_figure, check_mean, not_recomputed

# Inspect's letters: correct, incorrect, partial, no answer. The numbers are those its own metrics use.
LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_MEANS = {"accuracy", "mean"}


def score_number(score: object) -> tuple[float | None, Cause | None]:
    """A score's value as a number, or the cause of its absence."""
    value = mapping(score).get("value") if isinstance(score, dict) else score
    if value is None:
        return None, "missing"
    if isinstance(value, bool):
        return float(value), None
    if isinstance(value, int | float):
        number = float(value) if abs(value) < 10**300 else math.inf
        if math.isnan(number):
            return None, "nan"
        return (number, None) if abs(number) < 2**53 else (None, "invalid")
    if isinstance(value, str):
        known = LETTERS.get(value, _WORDS.get(value.strip().lower()))
        if known is not None:
            return known, None
        try:
            number = float(value)
        except ValueError:
            return None, "invalid"
        return (None, "nan") if math.isnan(number) else (number, None) if math.isfinite(number) else (None, "invalid")
    return None, "invalid"


def scorers_of(header: Mapping[str, Any], samples: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of scorers, those of the published results first."""
    published = [text_of(score.get("scorer") or score.get("name")) for score in rows(_results(header).get("scores"))]
    planned = [text_of(scorer.get("name")) for scorer in rows(mapping(header.get("eval")).get("scorers"))]
    found = [text_of(name) for sample in samples for name in mapping(sample.get("scores"))]
    return list(dict.fromkeys(name for name in (*published, *planned, *found) if name))


def declare(results: ForeignResults, names: Sequence[str]) -> None:
    """Declares one metric per scorer: binary when every value is 0 or 1."""
    for name in names:
        values = [trial.metrics[name] for trial in results.trials if name in trial.metrics]
        binary = all(value in (0, 1) for value in values)
        results.metrics.append(MetricDeclaration(name, "binary" if binary else "continuous"))
    for name in ("duration_s", "tokens"):
        if any(name in trial.metrics for trial in results.trials):
            results.metrics.append(MetricDeclaration(name, "continuous", "lower"))


def totals_of(header: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], where: str) -> list[PublishedTotal]:
    """Counts and means that the log publishes, against its samples."""
    results = _results(header)
    broken = sum(1 for sample in samples if sample.get("error"))
    checks = [
        check_count("total_samples", where, results.get("total_samples"), len(samples)),
        check_count("completed_samples", where, results.get("completed_samples"), len(samples) - broken),
    ]
    for score in rows(results.get("scores")):
        scorer = text_of(score.get("scorer")) or text_of(score.get("name")) or "score"
        names = [name for name in (text_of(score.get("name")), scorer) if name]
        values = _per_sample(samples, names)
        for name, metric in mapping(score.get("metrics")).items():
            label = f"{scorer}/{name}"
            figure = mapping(metric).get("value")
            short = name.rpartition("/")[2]
            plain_mean = score.get("reducer") in (None, "mean")
            if short in _MEANS and plain_mean:
                checks.append(check_mean(label, where, figure, values))
            elif short == "stderr" and plain_mean and not mapping(mapping(metric).get("options")):
                checks.append(check_figure(label, where, figure, standard_error(values), tolerance=1e-6))
            else:
                checks.append(not_recomputed(label, where, figure, "it is no plain mean of the samples' scores"))
    return [check for check in checks if check is not None]


def standard_error(values: Sequence[float | None]) -> float:
    """The standard error of the mean over the samples that have a value; 0 for fewer than two, as the tool has it."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return 0.0
    mean = math.fsum(known) / len(known)
    variance = math.fsum((value - mean) ** 2 for value in known) / (len(known) - 1)
    return math.sqrt(variance / len(known))


def _per_sample(samples: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[float | None]:
    """The mean over the epochs of each sample, which is what the tool averages; None where no epoch has a value."""
    groups: dict[str, list[float | None]] = {}
    for sample in samples:
        scores = mapping(sample.get("scores"))
        found = next((scores[name] for name in names if name in scores), None)
        value = score_number(found)[0] if found is not None else None
        groups.setdefault(repr(sample.get("id")), []).append(value)
    means: list[float | None] = []
    for group in groups.values():
        known = [value for value in group if value is not None]
        means.append(math.fsum(known) / len(known) if known else None)
    return means


def _results(header: Mapping[str, Any]) -> dict[str, Any]:
    return mapping(header.get("results"))
