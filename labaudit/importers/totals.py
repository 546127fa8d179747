"""Published figures and the rows they speak of to a verdict on each: agrees, or by how much it does not.

A row without a value is not a zero. Where a published figure only comes out when such rows are counted as failures,
that is said, because two tools that treat them differently are not comparable.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from labaudit.importers.results import ForeignResults, ImportFinding, PublishedTotal, Status

EXACT = 1e-9


def check_mean(
    name: str,
    where: str,
    published: object,
    values: Sequence[float | None],
    *,
    scale: float = 1.0,
    tolerance: float = EXACT,
) -> PublishedTotal | None:
    """A published mean against the mean of the rows that have a value; None when no number was published."""
    figure = _number(published)
    if figure is None:
        return None
    known = [value for value in values if value is not None]
    mean = scale * math.fsum(known) / len(known) if known else None
    as_failure = scale * math.fsum(known) / len(values) if values else None
    return _verdict(name, where, figure, mean, as_failure, tolerance, len(values) - len(known))


def check_count(
    name: str, where: str, published: object, counted: int, *, counting_missing: int | None = None
) -> PublishedTotal | None:
    """A published count against the counted one."""
    figure = _number(published)
    if figure is None:
        return None
    other = None if counting_missing is None else float(counting_missing)
    missing = 0 if counting_missing is None else abs(counting_missing - counted)
    return _verdict(name, where, figure, float(counted), other, EXACT, missing)


def check_figure(
    name: str, where: str, published: object, counted: float, *, tolerance: float
) -> PublishedTotal | None:
    """A published figure of any kind against the one computed from rows."""
    figure = _number(published)
    return None if figure is None else _verdict(name, where, figure, counted, None, tolerance, 0)


def check_sum(
    name: str, where: str, published: object, values: Iterable[float | None], *, tolerance: float = 1e-6
) -> PublishedTotal | None:
    """A published sum against the sum over the rows that have a value."""
    total = math.fsum(value for value in values if value is not None)
    return check_figure(name, where, published, total, tolerance=tolerance)


def not_recomputed(name: str, where: str, published: object, why: str) -> PublishedTotal | None:
    """A published figure that the rows do not give."""
    figure = _number(published)
    if figure is None:
        return None
    return PublishedTotal(name, where, figure, None, "not_recomputed", f"{name} of {where} was not recomputed: {why}.")


def total_findings(results: ForeignResults) -> list[ImportFinding]:
    """One finding per figure that its rows deny, and one for each kind of figure that needs an explanation."""
    findings = [
        ImportFinding("total_disagrees", "mismatch", total.sentence, total.where)
        for total in results.totals
        if total.status == "disagrees"
    ]
    silent = [total for total in results.totals if total.status == "agrees_counting_missing_as_failure"]
    if silent:
        said = (
            f"{len(silent)} published figure(s) come out only when trials without a result are counted as failures; "
            "here such trials are missing."
        )
        examples = tuple(total.sentence for total in silent[:5])
        findings.append(ImportFinding("missing_counted_as_failure", "mismatch", said, "", len(silent), examples))
    unknown = [total for total in results.totals if total.status == "not_recomputed"]
    if unknown:
        said = f"{len(unknown)} published figure(s) could not be recomputed from rows."
        examples = tuple(total.sentence for total in unknown[:5])
        findings.append(ImportFinding("total_not_recomputed", "caution", said, "", len(unknown), examples))
    if not results.totals:
        said = "The files publish no total, so none was compared with the rows."
        findings.append(ImportFinding("no_published_total", "note", said))
    return findings


def _verdict(
    name: str,
    where: str,
    published: float,
    recomputed: float | None,
    as_failure: float | None,
    tolerance: float,
    missing: int,
) -> PublishedTotal:
    status: Status = "disagrees"
    if recomputed is not None and _close(published, recomputed, tolerance):
        status = "agrees"
    elif as_failure is not None and _close(published, as_failure, tolerance):
        status = "agrees_counting_missing_as_failure"
    counted = "no row has a value" if recomputed is None else f"the rows give {_short(recomputed)}"
    sentence = f"{name} of {where} is published as {_short(published)}; {counted}"
    if missing and as_failure is not None:
        sentence += f", or {_short(as_failure)} with {missing} missing value(s) counted as failures"
    return PublishedTotal(name, where, published, recomputed, status, sentence + ".", as_failure if missing else None)


def _close(one: float, other: float, tolerance: float) -> bool:
    return abs(one - other) <= tolerance + EXACT * max(abs(one), abs(other))


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and abs(number) < 2**53 else None


def _short(value: float) -> str:
    return f"{value:.6g}"
