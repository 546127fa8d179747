"""Terminal-Bench results to foreign rows: per-trial `results.json`, run-level results, run_metadata.json and tb.lock.

    results/<dataset>/<submission>/<run>/<task>/<trial>/results.json     one trial
    results/<dataset>/<submission>/<run>/results.json                    a run: rows, accuracy, counts

A submission is a variant. The path may be the leaderboard, its `results`, one dataset, one submission or one run. A row
may stand in both places: the trial's own file is taken, and where the two differ both are named. `is_resolved: null` is
a missing value with the failure mode as its story; it is never a zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labaudit.errors import BadInput
from labaudit.importers.duplicates import merge_duplicates
from labaudit.importers.foreign_json import count_of, mapping, not_objects, plain, rows, text_of
from labaudit.importers.moments import seconds_between
from labaudit.importers.protocol import ReadOptions
from labaudit.importers.results import (
    Cause,
    ForeignResults,
    ForeignTrial,
    MetricDeclaration,
    Outcome,
    PublishedTotal,
    Tool,
    Value,
    VariantInfo,
)
from labaudit.importers.source_files import SourceFiles, folder_above
from labaudit.importers.totals import check_count, check_mean, not_recomputed

METRICS = [
    MetricDeclaration("success", "binary"),
    MetricDeclaration("duration_s", "continuous", "lower"),
    MetricDeclaration("tokens_in", "continuous", "lower"),
    MetricDeclaration("tokens_out", "continuous", "lower"),
]
_ERRORS = {"agent_installation_failed", "unknown_agent_error", "fatal_llm_parse_error", "unknown"}
_KEPT = ("id", "uuid", "failure_mode", "parser_results", "recording_path", "is_resolved")
_SETTINGS = ("agent_name", "model_name", "dataset_name", "dataset_version", "commit_hash", "n_attempts")
Row = Mapping[str, Any]


@dataclass
class _Run:
    """One invocation of the tool: a folder with its own run-level file."""

    variant: str
    name: str
    listed: list[tuple[str, Row, str]] = field(default_factory=list)
    """Trial name, row and file; a name may stand there twice."""
    published: list[tuple[Row, str]] = field(default_factory=list)
    trials: dict[str, list[tuple[Row, str]]] = field(default_factory=dict)


def read_terminal_bench(paths: Sequence[Path], files: SourceFiles, options: ReadOptions) -> ForeignResults:
    """All submissions at the paths."""
    results = ForeignResults("terminal-bench", None, Tool("terminal-bench"), list(METRICS), title="Terminal-Bench")
    runs: dict[tuple[str, str], _Run] = {}
    versions: Counter[str] = Counter()
    for root in paths:
        for path, name, parts in _files(root, files):
            label = _submission(root, parts, files)
            if options.wants(label):
                _take(results, runs, versions, files, path, name, label)
    for run in runs.values():
        results.trials.extend(_rows_of(run, results))
        results.totals.extend(_totals_of(run))
    if not results.trials:
        raise results.nothing("there are no Terminal-Bench results here", paths, "give a folder with results.json")
    if versions:
        results.tool = Tool("terminal-bench", versions.most_common(1)[0][0])
    if len(versions) > 1:
        said = "The runs were made by different versions of the tool: " + ", ".join(sorted(versions)) + "."
        results.note("mixed_versions", "caution", said, count=len(versions))
    merge_duplicates(results)
    _note_outcomes(results)
    return results


def _files(root: Path, files: SourceFiles) -> Iterator[tuple[Path, str, tuple[str, ...]]]:
    for path, name in files.below(root):
        if path.name.endswith("results.json") or path.name in ("run_metadata.json", "tb.lock"):
            yield path, name, path.relative_to(root).parts


def _submission(root: Path, parts: tuple[str, ...], files: SourceFiles) -> str:
    """The submission's name, by where the given path stands in the leaderboard's tree."""
    if parts[0] == "results" and len(parts) > 3:
        return parts[2]
    resolved = root.resolve()
    if resolved.name == "results" and len(parts) > 2:
        return parts[1]
    if resolved.parent.name == "results" and len(parts) > 1:
        return parts[0]
    return files.label(root)


def _take(
    results: ForeignResults,
    runs: dict[tuple[str, str], _Run],
    versions: Counter[str],
    files: SourceFiles,
    path: Path,
    name: str,
    label: str,
) -> None:
    try:
        document = mapping(files.json(path, name))
    except BadInput as error:
        results.note("unreadable_file", "mismatch", f"{name} cannot be read: {error.what}.", where=name)
        return
    if path.name == "tb.lock":
        version = text_of(mapping(document.get("harness")).get("version"))
        versions.update([version] if version else [])
        return
    info = results.variants.setdefault(label, VariantInfo(label))
    if path.name == "run_metadata.json":
        known = {key: plain(document[key]) for key in _SETTINGS if document.get(key) is not None}
        results.variants[label] = VariantInfo(label, {**known, **info.bindings})
        return
    if isinstance(document.get("results"), list):
        run = runs.setdefault((label, str(path.parent)), _Run(label, _run_name(path, name)))
        run.published.append((document, name))
        for number, row in enumerate(rows(document["results"]), start=1):
            run.listed.append((text_of(row.get("trial_name")) or f"unnamed-{number}", row, name))
        _note_rows_that_are_none(document["results"], name, results)
        return
    if "is_resolved" in document and text_of(document.get("task_id")):
        run = runs.setdefault((label, str(path.parent.parent.parent)), _Run(label, folder_above(path, name, 3)))
        run.trials.setdefault(text_of(document.get("trial_name")) or path.parent.name, []).append((document, name))
        return
    results.note("unknown_shape", "caution", f"{name} is neither a trial's nor a run's results.", where=name)


def _note_rows_that_are_none(given: object, name: str, results: ForeignResults) -> None:
    lost = not_objects(given)
    if lost:
        said = f"{lost} row(s) of {name} are no JSON objects; they are left out."
        results.note("unreadable_row", "mismatch", said, where=name, count=lost)


def _run_name(path: Path, name: str) -> str:
    """A run is called as its folder, or as its file where a folder holds the results of several."""
    file = name.rpartition("/")[2]
    return folder_above(path, name, 1) if file == "results.json" else file.removesuffix(".json")


def _rows_of(run: _Run, results: ForeignResults) -> Iterator[ForeignTrial]:
    """Every trial of a run once per file that tells of it alone; a run-level row only where there is no such file."""
    differing, without_file = [], []
    seen: set[str] = set()
    for trial_name, row, name in run.listed:
        own = run.trials.get(trial_name)
        if own is None:
            without_file.append(trial_name)
            yield _trial(run, trial_name, row, (name,), told_by="the run's results alone")
            continue
        seen.add(trial_name)
        for document, own_name in own:
            if document.get("is_resolved") is not row.get("is_resolved"):
                differing.append(f"{trial_name}: {row.get('is_resolved')} and {document.get('is_resolved')}")
            yield _trial(run, trial_name, document, (own_name, name), told_by="its own file")
    for trial_name, own in run.trials.items():
        if trial_name not in seen:
            for document, own_name in own:
                yield _trial(run, trial_name, document, (own_name,), told_by="its own file alone")
    unlisted = sorted(run.trials.keys() - seen) if run.listed else []
    where = f"{run.variant}/{run.name}"
    if differing:
        said = f"{where}: the run's results and the trials' own files differ on {len(differing)} trial(s)."
        results.note("row_differs", "mismatch", said, where=where, count=len(differing), examples=tuple(differing))
    if without_file and run.trials:
        said = f"{where}: {len(without_file)} row(s) of the run's results have no file of their own."
        results.note(
            "no_trial_file", "caution", said, where=where, count=len(without_file), examples=tuple(without_file)
        )
    if unlisted:
        said = f"{where}: {len(unlisted)} trial file(s) are not among the run's results."
        results.note("unlisted_trial", "mismatch", said, where=where, count=len(unlisted), examples=tuple(unlisted))
    told = [row for _, row, _ in run.listed] + [document for own in run.trials.values() for document, _ in own]
    for document in told:
        task_id = text_of(document.get("task_id"))
        if task_id is not None and task_id not in results.tasks:
            instruction = text_of(document.get("instruction"))
            results.tasks[task_id] = {"instruction": instruction} if instruction else {}


def _trial(run: _Run, name: str, row: Row, sources: tuple[str, ...], told_by: str) -> ForeignTrial:
    metrics: dict[str, Value] = {}
    missing: dict[str, Cause] = {}
    resolved, mode = row.get("is_resolved"), text_of(row.get("failure_mode"))
    outcome: Outcome
    if isinstance(resolved, bool):
        metrics["success"] = resolved
        outcome = "success" if resolved else "failure"
    else:
        cause: Cause = "error" if mode in _ERRORS else "missing" if resolved is None else "invalid"
        missing["success"] = cause
        outcome = "error" if cause == "error" else "missing"
    for metric, key in (("tokens_in", "total_input_tokens"), ("tokens_out", "total_output_tokens")):
        count = count_of(row.get(key))
        # Agents that do not count their tokens write 0 for both; no agent works without reading any.
        if count and count > 0:
            metrics[metric] = count
        else:
            missing[metric] = "absent"
    started, ended = text_of(row.get("trial_started_at")), text_of(row.get("trial_ended_at"))
    seconds = seconds_between(started, ended)
    if seconds is None:
        missing["duration_s"] = "absent"
    else:
        metrics["duration_s"] = seconds
    tokens = [metrics.get("tokens_in"), metrics.get("tokens_out")]
    known = [int(count) for count in tokens if isinstance(count, int)]
    said = f"failure mode {mode}" if mode and mode != "unset" else "no reason is given"
    return ForeignTrial(
        variant=run.variant,
        task_id=text_of(row.get("task_id")) or "unknown",
        original_id=f"{run.name}/{name}",
        order=(run.name, name),
        outcome=outcome,
        metrics=metrics,
        missing=missing,
        started_at=started,
        ended_at=ended,
        seconds=seconds,
        error=None if outcome in ("success", "failure") else f"is_resolved is {resolved!r}: {said}",
        tokens=sum(known) if len(known) == 2 else None,
        sources=sources,
        facts={"told_by": told_by, "run": run.name, **{key: plain(row[key]) for key in _KEPT if key in row}},
    )


def _totals_of(run: _Run) -> Iterator[PublishedTotal]:
    for document, name in run.published:
        given = [row.get("is_resolved") for row in rows(document["results"])]
        values = [float(value) if isinstance(value, bool) else None for value in given]
        true, false = sum(value == 1.0 for value in values), sum(value == 0.0 for value in values)
        checks = [
            check_mean("accuracy", name, document.get("accuracy"), values),
            check_count("n_resolved", name, document.get("n_resolved"), true),
            check_count("n_unresolved", name, document.get("n_unresolved"), false, counting_missing=len(values) - true),
        ]
        for k, figure in mapping(document.get("pass_at_k")).items():
            checks.append(not_recomputed(f"pass_at_{k}", name, figure, "the analysis gives pass@k for every variant"))
        yield from (check for check in checks if check is not None)


def _note_outcomes(results: ForeignResults) -> None:
    nulls = [trial for trial in results.trials if trial.outcome in ("missing", "error")]
    if nulls:
        modes = Counter(str(trial.facts.get("failure_mode") or "without a failure mode") for trial in nulls)
        told = ", ".join(f"{count} {mode}" for mode, count in modes.most_common())
        said = f"{len(nulls)} of {len(results.trials)} trials have no verdict ({told}); they are missing, not failures."
        results.note("no_verdict", "caution", said, count=len(nulls), examples=tuple(t.original_id for t in nulls[:5]))
    modes = Counter(str(trial.facts.get("failure_mode")) for trial in results.trials)
    timeouts = {mode: count for mode, count in modes.items() if "timeout" in mode}
    if timeouts:
        told = ", ".join(f"{count} {mode}" for mode, count in sorted(timeouts.items()))
        said = f"{sum(timeouts.values())} trials ran into a timeout ({told}); some of them still have a verdict."
        results.note("timeouts", "note", said, count=sum(timeouts.values()))
