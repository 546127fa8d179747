"""SWE-bench results to foreign rows, from whichever of its files there are.

    <model>.<run>.json          the evaluation report: ids by fate, and counts of them
    .../<instance>/report.json  one instance: patch applied, tests by status, resolved
    *.jsonl                     predictions: an empty patch is a failure that was never evaluated
    results.json                a leaderboard submission: resolved, no_generation, no_logs
    leaderboards.json and per-instance JSON: see swebench_leaderboard

An instance that no file judges has no verdict: an id list says who resolved, never that the others failed, unless the
same file lists them as unresolved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from labaudit.errors import BadInput
from labaudit.importers.foreign_json import mapping, plain, read_foreign_json, text_of
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
from labaudit.importers.swebench_leaderboard import is_leaderboard, read_leaderboard
from labaudit.importers.totals import check_count

METRICS = (
    MetricDeclaration("resolved", "binary"),
    MetricDeclaration("cost_usd", "continuous", "lower"),
    MetricDeclaration("api_calls", "continuous", "lower"),
)
# The report's id lists, the later one deciding: an instance may be both submitted and resolved.
_FATES: tuple[tuple[str, Outcome, Cause | None], ...] = (
    ("submitted_ids", "missing", "missing"),
    ("incomplete_ids", "missing", "missing"),
    ("empty_patch_ids", "failure", None),
    ("error_ids", "error", "error"),
    ("unresolved_ids", "failure", None),
    ("resolved_ids", "success", None),
)
_LISTS: tuple[tuple[str, Outcome, Cause | None], ...] = (
    ("no_logs", "error", "error"),
    ("no_generation", "failure", None),
    ("unresolved", "failure", None),
    ("resolved", "success", None),
)
_UNJUDGED = {"invalid": "what the files say of this instance is no verdict, or differs", "error": "listed as an error"}
_COUNTS = {
    "submitted_instances": "submitted_ids",
    "resolved_instances": "resolved_ids",
    "unresolved_instances": "unresolved_ids",
    "empty_patch_instances": "empty_patch_ids",
    "error_instances": "error_ids",
    "completed_instances": "completed_ids",
}
Json = dict[str, Any]


@dataclass
class _Verdict:
    """What the files say of one instance."""

    outcome: Outcome
    cause: Cause | None
    sources: list[str]
    facts: Json = field(default_factory=dict)


@dataclass
class _Submission:
    """One model's instances."""

    label: str
    verdicts: dict[str, _Verdict] = field(default_factory=dict)
    reports: dict[str, tuple[bool | None, str, Json]] = field(default_factory=dict)
    predictions: dict[str, tuple[bool, str]] = field(default_factory=dict)
    alike: set[str] = field(default_factory=set)
    """Instances that several files of one kind judge, always the same way."""
    conflicts: set[str] = field(default_factory=set)

    def judge(self, instance: str, verdict: _Verdict) -> None:
        """Takes a list's verdict; where another list has given a different one, none of them counts."""
        other = self.verdicts.get(instance)
        if other is not None:
            if self._agree(instance, other.outcome == verdict.outcome):
                verdict = replace(verdict, sources=[*other.sources, *verdict.sources])
            else:
                verdict = _Verdict("missing", "invalid", [*other.sources, *verdict.sources])
        self.verdicts[instance] = verdict

    def report(self, instance: str, resolved: bool | None, name: str, facts: Json) -> None:
        """Takes an instance's own report, by the same rule."""
        other = self.reports.get(instance)
        if other is not None and not self._agree(instance, other[0] is resolved):
            resolved, facts = None, {"told_by": f"{other[1]} and {name}, which differ"}
        self.reports[instance] = (resolved, name, facts)

    def _agree(self, instance: str, same: bool) -> bool:
        if same and instance not in self.conflicts:
            self.alike.add(instance)
            return True
        self.alike.discard(instance)
        self.conflicts.add(instance)
        return False


def read_swebench(paths: Sequence[Path], files: SourceFiles, options: ReadOptions) -> ForeignResults:
    """All submissions at the paths."""
    results = ForeignResults("swebench", None, Tool("swebench"), list(METRICS), title="SWE-bench")
    submissions: dict[str, _Submission] = {}
    for root in paths:
        for path, name in _result_files(root, files):
            try:
                _read_file(path, name, root, files, options, results, submissions)
            except BadInput as error:
                results.note("unreadable_file", "mismatch", f"{name} cannot be read: {error.what}.", where=name)
    for submission in submissions.values():
        if options.wants(submission.label):
            results.trials.extend(_rows(submission, results))
    if not results.trials:
        hint = "a report, report.json files, or a leaderboard"
        raise results.nothing("there are no SWE-bench results here", paths, hint)
    if not any("cost_usd" in trial.metrics for trial in results.trials):
        results.metrics = [results.metrics[0]]
    return results


def _result_files(root: Path, files: SourceFiles) -> Iterator[tuple[Path, str]]:
    if not root.is_dir():
        yield root, files.label(root)
        return
    for path, name in files.below(root):
        if path.suffix in (".json", ".jsonl"):
            yield path, name


def _read_file(
    path: Path,
    name: str,
    root: Path,
    files: SourceFiles,
    options: ReadOptions,
    results: ForeignResults,
    submissions: dict[str, _Submission],
) -> None:
    data = files.bytes(path, name)
    if path.suffix == ".jsonl":
        _read_predictions(data, name, submissions, results)
        return
    document = read_foreign_json(data, name)
    if path.name == "report.json" and isinstance(document, dict):
        _read_instance_reports(document, path, name, submissions)
    elif is_leaderboard(document):
        read_leaderboard(document, name, path, options, results)
    elif not isinstance(document, dict):
        return
    elif isinstance(document.get("resolved_ids"), list):
        label = path.name.removesuffix(".json")
        label = label.rpartition(".")[0] or label
        _read_report(document, name, _submission(submissions, label), results)
    elif isinstance(document.get("resolved"), list):
        inside = folder_above(path, name, 1)
        label = folder_above(path, name, 2) if inside == "results" else inside
        _read_id_lists(document, name, _submission(submissions, label), results)


def _submission(submissions: dict[str, _Submission], label: str) -> _Submission:
    return submissions.setdefault(label, _Submission(label))


def _read_predictions(
    data: bytes, name: str, submissions: dict[str, _Submission], results: ForeignResults
) -> None:
    """All lines or none: half a file of predictions would be a smaller submission."""
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), start=1) if line.strip()]
    nameless = 0
    for row in [mapping(read_foreign_json(line, f"{name}:{number}")) for number, line in lines]:
        instance, model = text_of(row.get("instance_id")), text_of(row.get("model_name_or_path"))
        if instance is None or model is None:
            nameless += 1
            continue
        patch = row.get("model_patch")
        submission = _submission(submissions, model.replace("/", "__"))
        has_patch = bool(isinstance(patch, str) and patch.strip())
        # Of two predictions the one with a patch counts: an empty one would be a failure that nobody judged.
        before = submission.predictions.get(instance, (False, name))[0]
        submission.predictions[instance] = (has_patch or before, name)
    if nameless:
        said = f"{nameless} line(s) of {name} name no instance or no model; they are left out."
        results.note("row_without_name", "mismatch", said, where=name, count=nameless)


def _read_instance_reports(document: Json, path: Path, name: str, submissions: dict[str, _Submission]) -> None:
    """logs/run_evaluation/<run>/<model>/<instance>/report.json."""
    submission = _submission(submissions, folder_above(path, name, 2))
    for instance, report in document.items():
        given = mapping(report)
        resolved = given.get("resolved")
        facts = {key: plain(value, depth=4) for key, value in given.items() if key != "tests_status"}
        submission.report(str(instance), resolved if isinstance(resolved, bool) else None, name, facts)


def _read_report(document: Json, name: str, submission: _Submission, results: ForeignResults) -> None:
    own: dict[str, _Verdict] = {}
    for key, outcome, cause in _FATES:
        for instance in _ids(document.get(key)):
            own[instance] = _Verdict(outcome, cause, [name], {"listed_in": key})
    results.totals.extend(_totals(document, name))
    faults = _ids(document.get("infra_failure_ids"))
    if faults:
        said = f"{name} names {len(faults)} instance(s) as likely failures of the infrastructure; they stay as judged."
        results.note("infrastructure_suspected", "caution", said, where=name, count=len(faults), examples=tuple(faults))
    overlap = sorted(set(_ids(document.get("resolved_ids"))) & set(_ids(document.get("unresolved_ids"))))
    if overlap:
        said = f"{name} lists {len(overlap)} instance(s) as resolved and as unresolved; their verdict is unknown here."
        results.note("conflicting_trial", "mismatch", said, where=name, count=len(overlap), examples=tuple(overlap))
        own |= {instance: _Verdict("missing", "invalid", [name]) for instance in overlap}
    for instance, verdict in own.items():
        submission.judge(instance, verdict)


def _read_id_lists(document: Json, name: str, submission: _Submission, results: ForeignResults) -> None:
    own: dict[str, _Verdict] = {}
    for key, outcome, cause in _LISTS:
        for instance in _ids(document.get(key)):
            own[instance] = _Verdict(outcome, cause, [name], {"listed_in": key})
    for instance, verdict in own.items():
        submission.judge(instance, verdict)
    if "unresolved" not in document:
        said = f"{name} names who resolved and not who was tried: instances that it does not list have no row here."
        results.note("denominator_unknown", "mismatch", said, where=name)


def _totals(document: Json, where: str) -> Iterator[PublishedTotal]:
    for key, listed in _COUNTS.items():
        if isinstance(document.get(listed), list):
            check = check_count(key, where, document.get(key), len(_ids(document[listed])))
            if check is not None:
                yield check


def _ids(value: object) -> list[str]:
    return (
        list(dict.fromkeys(item for item in value if isinstance(item, str) and item)) if isinstance(value, list) else []
    )


def _rows(submission: _Submission, results: ForeignResults) -> Iterator[ForeignTrial]:
    label = submission.label
    results.variants.setdefault(label, VariantInfo(label))
    differing = []
    instances = dict.fromkeys((*submission.verdicts, *submission.reports, *submission.predictions))
    for instance in sorted(instances):
        verdict = submission.verdicts.get(instance)
        told = submission.reports.get(instance)
        if told is not None:
            resolved, name, facts = told
            own = _of_report(resolved, name, facts)
            if verdict is not None and verdict.outcome in ("success", "failure") and own.outcome != verdict.outcome:
                differing.append(f"{instance}: report {own.outcome}, list {verdict.outcome}")
            own.sources += verdict.sources if verdict is not None else []
            verdict = own
        verdict = verdict or _of_prediction(submission.predictions[instance])
        results.tasks.setdefault(instance, {})
        yield _trial(label, instance, verdict, submission.predictions.get(instance))
    if differing:
        said = f"{label}: the instances' own reports and the submission's lists differ on {len(differing)} instance(s)."
        results.note("row_differs", "mismatch", said, where=label, count=len(differing), examples=tuple(differing))
    _note_told_twice(submission, results)
    unlisted = sorted(submission.reports.keys() - submission.verdicts.keys()) if submission.verdicts else []
    if unlisted:
        said = f"{label}: {len(unlisted)} instance report(s) are in none of the submission's lists."
        results.note("unlisted_trial", "mismatch", said, where=label, count=len(unlisted), examples=tuple(unlisted))


def _note_told_twice(submission: _Submission, results: ForeignResults) -> None:
    label, alike, unlike = submission.label, sorted(submission.alike), sorted(submission.conflicts)
    if alike:
        said = f"{label}: several files judge {len(alike)} instance(s) alike; each counts once."
        results.note("duplicate_trial", "mismatch", said, where=label, count=len(alike), examples=tuple(alike))
    if unlike:
        said = f"{label}: several files judge {len(unlike)} instance(s) differently; their verdict is unknown here."
        results.note("conflicting_trial", "mismatch", said, where=label, count=len(unlike), examples=tuple(unlike))


def _of_report(resolved: bool | None, name: str, facts: Json) -> _Verdict:
    if resolved is None:
        return _Verdict("missing", "invalid", [name], facts)
    return _Verdict("success" if resolved else "failure", None, [name], facts)


def _of_prediction(prediction: tuple[bool, str]) -> _Verdict:
    has_patch, name = prediction
    if has_patch:
        return _Verdict("missing", "missing", [name], {"told_by": "a prediction that no report judges"})
    return _Verdict("failure", None, [name], {"told_by": "an empty patch"})


def _trial(label: str, instance: str, verdict: _Verdict, prediction: tuple[bool, str] | None) -> ForeignTrial:
    metrics: Mapping[str, Value] = {"resolved": verdict.outcome == "success"}
    judged = verdict.cause is None
    sources = [*verdict.sources, *([prediction[1]] if prediction else [])]
    return ForeignTrial(
        variant=label,
        task_id=instance,
        original_id=instance,
        order=(instance,),
        outcome=verdict.outcome,
        metrics=metrics if judged else {},
        missing={} if judged else {"resolved": verdict.cause or "missing"},
        error=None if judged else _UNJUDGED.get(verdict.cause or "", "no file judges this instance"),
        sources=tuple(dict.fromkeys(sources)),
        facts=verdict.facts,
    )
