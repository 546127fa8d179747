"""Results to lines of text that fit a terminal of 80 columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from labaudit.analysis.coverage import CoverageRow
from labaudit.analysis.pair_bundle import PairBundle
from labaudit.core.strict_json import parse_object
from labaudit.records.analysis_summary import AnalysisSummary
from labaudit.records.comparisons import Arm, Comparison

WIDTH = 80
_GAP = "  "
_NARROWEST = 5
_FOLDED_WORD = 24
FEWEST_SHOWN = 100
_NUMBER = re.compile(r"[][+\-.,\d e%<]*$")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], width: int = WIDTH) -> Iterator[str]:
    """Left-aligned columns; while they do not fit, the widest column of words is shortened, a number never.

    Numbers that still leave no room go into a second table under the first, which repeats the first column.
    """
    cells = [[printable(cell) for cell in row] for row in (header, *rows)]
    natural = [max(len(row[column]) for row in cells) for column in range(len(header))]
    words = [column for column in range(len(header)) if not all(_NUMBER.match(row[column]) for row in cells[1:])]
    widths = list(natural)
    while words and sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        widest = max(words, key=widths.__getitem__)
        if widths[widest] <= _NARROWEST:
            # Shortened names would not save the line: it is folded, and they may as well be read.
            widths = [min(size, _FOLDED_WORD) if column in words else size for column, size in enumerate(natural)]
            break
        widths[widest] -= 1
    for columns in _folded(widths, width):
        for row in cells:
            shortened = (_shortened(row[column], widths[column]).ljust(widths[column]) for column in columns)
            yield _GAP.join(shortened).rstrip()


def _folded(widths: Sequence[int], width: int) -> list[list[int]]:
    """Columns in groups that fit; the first column names the row in each."""
    groups: list[list[int]] = [[]]
    for column, size in enumerate(widths):
        taken = sum(widths[one] + len(_GAP) for one in groups[-1])
        if len(groups[-1]) > 1 and taken + size > width:
            groups.append([0])
        groups[-1].append(column)
    return groups


def printable(text: str) -> str:
    """Ids come from datasets: what could steer a terminal is shown as an escape."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _shortened(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"


def note(text: str, mark: str = "!") -> Iterator[str]:
    """A sentence under a table, wrapped."""
    yield from textwrap.wrap(printable(text), WIDTH, initial_indent=f"  {mark} ", subsequent_indent="    ")


def number(value: float | int | None, sign: bool = False) -> str:
    """Three figures after the point for ordinary sizes, else four that matter; `-` for none."""
    if value is None:
        return "-"
    size = abs(float(value))
    form = ".3f" if size == 0 or 0.001 <= size < 10_000 else ".3g"
    return format(float(value), f"+{form}" if sign else form)


def probability(value: float | int | None) -> str:
    """A p-value."""
    if value is None:
        return "-"
    return "<0.0001" if value < 0.0001 else format(float(value), ".4f")


def interval(one: Comparison) -> str:
    """Both ends, or a dash."""
    if one.interval.low is None or one.interval.high is None:
        return "-"
    return f"[{number(one.interval.low, True)}, {number(one.interval.high, True)}]"


def comparison_lines(comparisons: Sequence[Comparison], *, arms: bool) -> Iterator[str]:
    """A table of estimates and, under it, what each one needs said."""
    level = f"{100 * float(comparisons[0].interval.level):g} % interval" if comparisons else "interval"
    first = ["metric", "base", "variant"] if arms else ["variant", "metric"]
    header = [*first, "effect", level, "p", "adjusted", "n"]
    rows = [
        [
            *([one.metric, number(one.arms.baseline.mean), number(one.arms.variant.mean)] if arms
              else [one.variant, one.metric]),
            number(one.estimate, True), interval(one), probability(one.p.value), probability(one.p.adjusted),
            str(one.n_tasks),
        ]
        for one in comparisons
    ]  # fmt: skip
    yield from table(header, rows)
    for one in comparisons:
        yield ""
        yield from _comparison_notes(one)


def _comparison_notes(one: Comparison) -> Iterator[str]:
    said = {"variant": "favours the variant", "baseline": "favours the baseline", "undecided": "undecided"}
    verdict = said.get(one.favours or "", "no verdict")
    methods = ", ".join(filter(None, (one.effect, one.interval.method, one.p.method)))
    yield from textwrap.wrap(printable(f"{one.variant} / {one.metric} ({one.role}): {verdict}"), WIDTH)
    yield from note(methods, mark="=")
    if one.reason is not None:
        yield from note(one.reason.sentence)
    elif one.interval.reason is not None:
        yield from note(one.interval.reason.sentence)
    if one.minimal_detectable_effect.value is not None:
        yield from note(_detectable(one, float(one.minimal_detectable_effect.value)), mark="=")
    bounds = one.manski_bounds
    if bounds.low is not None and one.arms.baseline.missing + one.arms.variant.missing:
        ends = f"{number(bounds.low, True)} to {number(bounds.high, True)}"
        yield from note(f"Whatever the missing trials would have shown, the estimate would be within {ends}.", mark="=")
    for warning in one.warnings:
        yield from note(warning.sentence)


def _detectable(one: Comparison, least: float) -> str:
    if one.type == "binary" and one.effect != "log_ratio" and least > 1.0:
        return "Such an experiment is too small to see any effect reliably."
    return f"Such an experiment sees an effect of {number(least)} in 4 of 5 cases."


def summary_lines(summary: AnalysisSummary, comparisons: Sequence[Comparison]) -> Iterator[str]:
    """What `labaudit analyze` prints."""
    totals = summary.totals
    yield f"{printable(summary.run_id)}: {summary.tasks} tasks, {totals.scheduled} trials scheduled"
    yield f"{totals.included} included, {totals.excluded} excluded, {totals.lost} lost"
    yield ""
    header = ["variant", "metric", "mean", "clustered SE", "valid", "missing"]
    rows = [
        [variant.variant_id, one.metric, number(one.mean), number(one.clustered_se), str(one.valid), str(one.missing)]
        for variant in summary.variants
        for one in variant.metrics
    ]
    yield from table(header, rows)
    if comparisons:
        yield ""
        yield from comparison_lines(comparisons, arms=False)
    yield ""
    yield f"{summary.suspects} suspects, {summary.insufficient_evidence} checks without enough evidence"
    for warning in summary.warnings:
        yield from note(warning.sentence)


def bundle_lines(bundle: PairBundle, shown: int) -> Iterator[str]:
    """What `labaudit compare` prints; `shown` limits each list of tasks."""
    yield from textwrap.wrap(printable(f"{bundle.run_id}: {bundle.variant} against {bundle.baseline}"), WIDTH)
    if not bundle.planned:
        yield from note("The plan does not compare these two: estimates without p-values, to look at, not to conclude.")
    yield ""
    yield from comparison_lines(bundle.comparisons, arms=True)
    yield from _pass_lines(bundle.comparisons)
    yield from _pair_lines(bundle, shown)
    yield from _exemplar_lines(bundle, shown)
    yield from _suspect_lines(bundle.suspects)
    yield from _diff_lines(bundle, shown)


def _pass_lines(comparisons: Sequence[Comparison]) -> Iterator[str]:
    rows: list[list[str]] = []
    for one in comparisons:
        for arm in (one.arms.baseline, one.arms.variant):
            rows.extend(_pass_rows(one.metric, arm))
    if rows:
        yield ""
        yield from table(["metric", "arm", "k", "pass@k", "pass^k", "tasks"], rows)


def _pass_rows(metric: str, arm: Arm) -> Iterator[list[str]]:
    for row in arm.pass_k:
        if row.pass_at_k is not None:
            values = [number(row.pass_at_k), number(row.pass_hat_k), str(row.n_tasks)]
            yield [metric, arm.variant_id, str(row.k), *values]


def _pair_lines(bundle: PairBundle, shown: int) -> Iterator[str]:
    """Pairs that differ, largest difference first; pairs without one are counted."""
    pairs = [parse_object(line) for line in bundle.pairs.splitlines()]
    differing = [pair for pair in pairs if pair["difference"] not in (0, None)]
    incomplete = sum(1 for pair in pairs if pair["difference"] is None)
    yield ""
    alike = len(pairs) - len(differing) - incomplete
    yield f"Pairs: {len(differing)} differ, {alike} are alike, {incomplete} lack a value"
    for name in dict.fromkeys(str(pair["metric"]) for pair in pairs):
        ranked = sorted((pair for pair in differing if pair["metric"] == name), key=_by_size)
        rows = [
            [
                name, str(pair["task_id"]), str(pair["repl_idx"]), _value(pair["baseline_value"]),
                _value(pair["variant_value"]), number(_float(pair["difference"]), True), str(pair["status"]),
            ]
            for pair in ranked[:shown]
        ]  # fmt: skip
        if rows:
            yield from table(["metric", "task", "repl", "base", "variant", "difference", "status"], rows)
            yield from _more(len(ranked) - shown)


def _more(count: int) -> Iterator[str]:
    if count > 0:
        yield from note(f"{count} more; --shown, --json or --out give them all", mark="=")


def _by_size(pair: Mapping[str, object]) -> tuple[float, str, str]:
    return -abs(_float(pair["difference"]) or 0.0), str(pair["task_id"]), str(pair["repl_idx"])


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _value(value: object) -> str:
    return number(_float(value))


def _exemplar_lines(bundle: PairBundle, shown: int) -> Iterator[str]:
    for group in bundle.exemplars["groups"]:
        yield ""
        yield from textwrap.wrap(printable(f"Exemplars for {group['metric']}: tasks to read first"), WIDTH)
        if group["reason"]:
            yield from note(group["reason"])
        rows = [
            [one["kind"], str(one["rank"]), one["task_id"], *(number(one[key]) for key in _EXEMPLAR_NUMBERS)]
            for one in group["exemplars"]
            if one["rank"] <= shown
        ]
        if rows:
            yield from table(["kind", "rank", "task", "base", "variant", "difference"], rows)


_EXEMPLAR_NUMBERS = ("baseline_mean", "variant_mean", "difference")


def _suspect_lines(suspects: Mapping[str, Any]) -> Iterator[str]:
    found = suspects["suspects"]
    yield ""
    flagged = [one for one in found if one["status"] == "flagged"]
    unknown = [one for one in found if one["status"] == "insufficient_evidence"]
    yield f"Suspects: {len(flagged)} of {len(found)} checks flagged, {len(unknown)} without enough evidence"
    yield from note(suspects["note"], mark="=")
    for one in flagged:
        coverage = f"{one['coverage']['covered']} of {one['coverage']['total']}"
        p = "" if one["p_adjusted"] is None else f", adjusted p {probability(one['p_adjusted'])}"
        yield from note(f"{one['id']}: {one['sentence']} ({one['evidence_source']}, {coverage}{p})")
    if unknown:
        yield from note("insufficient_evidence: " + ", ".join(one["id"] for one in unknown), mark="?")


def _diff_lines(bundle: PairBundle, shown: int) -> Iterator[str]:
    lines = [parse_object(line) for line in bundle.diffs]
    yield ""
    by_kind = {kind: sum(1 for line in lines if line["granularity"] == kind) for kind in ("step", "turn", "output")}
    told = ", ".join(f"{count} by {kind}" for kind, count in by_kind.items() if count)
    yield f"Aligned diffs: {len(lines)} pairs of trials" + (f" ({told})" if told else "")
    rows = [row for line in lines for row in _divergence(line)]
    if rows:
        yield from table(["task", "repl", "aligned by", "first divergence", "changes"], rows[:shown])
        yield from _more(len(rows) - shown)


def _divergence(line: Mapping[str, Any]) -> Iterator[list[str]]:
    diff = line["sequence"]["diff"]
    if diff and diff["first_divergence"]:
        first = diff["first_divergence"]
        unit = (first["variant"] or first["baseline"])[0]
        place = f"{first['kind']} at {unit['index']}: {' '.join(unit['calls'])}"
        yield [line["task_id"], str(line["repl_idx"]), line["granularity"], place, str(diff["changes_total"])]


def coverage_lines(rows: Sequence[CoverageRow]) -> Iterator[str]:
    """The simulated coverage as a table."""
    header = ["population", "effect", "n", "r", "coverage", "percentile", "unwarned", "warned"]
    cells = [
        [
            row.population, row.effect, str(row.tasks), str(row.replicates), f"{row.coverage:.3f}",
            number(row.percentile_coverage), _unwarned(row), f"{row.warned / row.sets:.0%}",
        ]
        for row in rows
    ]  # fmt: skip
    yield from table(header, cells)


def _unwarned(row: CoverageRow) -> str:
    """A share of too few experiments says nothing."""
    return number(row.coverage_without_warning) if row.sets - row.warned >= FEWEST_SHOWN else "-"
