"""A finished run to sentences about what its user should look at first: nothing here decides or changes anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from labaudit.records.analysis_summary import AnalysisSummary
from labaudit.records.inclusion import Inclusion, InclusionRow
from labaudit.store import atomic
from labaudit.store.run_folder import RunFolder

_TAIL = 4096
_LONGEST = 160


def warnings(run: RunFolder, included: Inclusion) -> tuple[str, ...]:
    """What a reader of the grades should know besides, with a place to start at."""
    found: list[str] = []
    lost = [row for row in included.rows if row.status == "lost"]
    if lost:
        found.append(f"{len(lost)} trial(s) lost: {lost[0].reason}")
    for outcome, sentence in (("error", "ended in error"), ("missing", "left no usable output")):
        rows = [row for row in included.rows if row.outcome == outcome]
        if rows:
            found.append(f"{len(rows)} trial(s) {sentence}; {_where_to_look(run, rows[0])}")
    if run.summary.is_file():
        summary = AnalysisSummary.from_bytes(atomic.read_bytes(run.summary), where=str(run.summary))
        found += _primary_metrics_without_values(summary)
    return tuple(found)


def _where_to_look(run: RunFolder, row: InclusionRow) -> str:
    trial = run.trial(row.trial_id)
    said = last_words(trial.stderr)
    return f"the first: {trial.stderr}: {said}" if said else f"the first: {trial.path}"


def last_words(path: Path) -> str:
    """The last line of a log that says something, cut to fit; empty when there is none."""
    if not path.is_file():
        return ""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - _TAIL))
        lines = stream.read(_TAIL).decode("utf-8", "replace").splitlines()
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")
    # A log is what an agent wrote: no terminal codes on the user's screen.
    return "".join(letter for letter in said if letter.isprintable())[:_LONGEST]


def _primary_metrics_without_values(summary: AnalysisSummary) -> Iterator[str]:
    valid: Counter[str] = Counter()
    causes: dict[str, Counter[str]] = {}
    for variant in summary.variants:
        for metric in variant.metrics:
            if metric.role == "primary":
                valid[metric.metric] += metric.valid
                causes.setdefault(metric.metric, Counter()).update(metric.missing_by_cause.to_json())
    for name, by_cause in causes.items():
        if valid[name] == 0:
            why = ", ".join(f"{count} {cause}" for cause, count in sorted(by_cause.items()) if count)
            yield f"the primary metric {name} has no value in any trial ({why}): nothing can be concluded from this run"
