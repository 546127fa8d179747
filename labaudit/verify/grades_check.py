"""Are the grades those that the stored evidence gives? Every trial is observed and graded again, then the run.

A run that a later version of labaudit sealed may have been graded by other rules: then a difference is told and is no
contradiction, unless the stored grade is the higher one.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from labaudit import __version__
from labaudit.attest.run_reader import Json
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput, LabauditError
from labaudit.evidence.observation import NotObserved, ObservedTrial
from labaudit.evidence.observe import observe_trial
from labaudit.evidence.trial_facts import TrialFacts
from labaudit.grading.grades import RunGrader, grade_trial
from labaudit.records.comparisons import Comparisons
from labaudit.records.grades import Grades
from labaudit.records.inclusion import Inclusion
from labaudit.records.resolved import ResolvedExperiment
from labaudit.records.schema_registry import fast_validator
from labaudit.records.trial_record import TrialRecord
from labaudit.store.run_folder import TrialFolder
from labaudit.verify.policy import SCALES
from labaudit.verify.run_view import MAX_LINE, RunView
from labaudit.verify.sources import CannotRead
from labaudit.verify.verdict import Finding

_VERSION = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})")
# Files that an observation reads whole; a trial where one is larger is not graded again, and the report says so.
MAX_OBSERVED = 2 * 1024 * 1024
_READ_WHOLE = frozenset(
    {
        "state_inventory.json", "harness_manifest.json", "trace_manifest.json", "control.jsonl", "events.head",
        "receipt.json",
    }
)  # fmt: skip
_READ_BY_LINE = frozenset({"events.jsonl", "harness_events.jsonl", "network_events.jsonl", "sdk_boundaries.jsonl"})
# What is copied out of a bundle for one trial at most.
MAX_COPIED = 1 << 30


@dataclass
class _Outcome:
    """What recomputing gave; `why_not` says why it was not done."""

    findings: list[Finding] = field(default_factory=list)
    table: list[Finding] = field(default_factory=list)
    why_not: str = ""
    other_rules: bool = False


def grades_follow_from_the_evidence(view: RunView) -> Iterator[Finding]:
    """Trial grades and run grades, computed again from stored files, are the stored ones."""
    yield from _outcome(view).findings


def statuses_follow_from_the_evidence(view: RunView) -> Iterator[Finding]:
    """A trial counts, is excluded or is lost as what was observed of it says, not as suits the result."""
    yield from _outcome(view).table


def grades_claim(view: RunView) -> str:
    """recomputed, mismatch or not_recomputed."""
    outcome = _outcome(view)
    if outcome.findings:
        return "mismatch"
    return "not_recomputed" if outcome.why_not or outcome.other_rules else "recomputed"


def _outcome(view: RunView) -> _Outcome:
    if "grades" not in view.memo:
        view.memo["grades"] = _recompute(view)
    found: _Outcome = view.memo["grades"]
    return found


def _recompute(view: RunView) -> _Outcome:
    outcome, grader = _Outcome(), RunGrader()
    stored = view.document("grades.json")
    try:
        resolved = ResolvedExperiment.from_json(view.document("resolved_experiment.json"))
        inclusion = Inclusion.from_json(view.document("inclusion.json"))
    except LabauditError as error:
        return _Outcome(why_not=error.what)
    if stored is None or not fast_validator("grades_v1").is_valid(stored) or view.manifest is None:
        return _Outcome(why_not="grades.json or manifest.json cannot be read")
    if not view.schedule_is_known:
        return _Outcome(why_not="schedule.jsonl cannot be read")
    same_rules = not _is_newer(str(view.manifest["tool"].get("version")))
    graded, statuses = 0, {row.trial_id: (row.status, row.rule) for row in inclusion.rows}
    for trial_id, record in view.records():
        one = _trial(view, trial_id, record, resolved, outcome, same_rules)
        if one is not None:
            grader.add(*one)
            graded += 1
            status = _status(one[1], resolved)
            stored_status = statuses.get(trial_id, status)
            if stored_status != status and same_rules:
                what = f"trial {trial_id} is {' by '.join(stored_status)}, by what was observed {' by '.join(status)}"
                outcome.table.append(Finding("inclusion_mismatch", "inclusion.json", what))
            outcome.other_rules |= stored_status != status
    if not outcome.why_not and graded != len(view.schedule):
        outcome.why_not = "not every trial could be graded again"
    if outcome.why_not or outcome.findings:
        return outcome
    fresh = grader.grades(str(view.run_id), inclusion, _comparisons(view))
    _compare(fresh.to_json(), stored, "grades.json", outcome, same_rules)
    return outcome


def _trial(
    view: RunView, trial_id: str, record: Json, resolved: ResolvedExperiment, outcome: _Outcome, same_rules: bool
) -> tuple[Grades, ObservedTrial] | None:
    path = f"trials/{trial_id}/grades.json"
    if not any(entry["path"] == "grades.json" for entry in record["files"]):
        outcome.findings.append(Finding("grades_unavailable", path, "every trial has its grades"))
        return None
    try:
        stored = parse_object(view.source.read(path, MAX_LINE), where=path)
    except CannotRead as error:
        outcome.why_not = error.finding.message  # the step that hashes trial files names it
        return None
    except BadInput as error:
        outcome.findings.append(Finding("grades_unavailable", path, error.what))
        return None
    if not fast_validator("grades_v1").is_valid(stored):
        outcome.findings.append(Finding("grades_unavailable", path, "are no grades_v1 document"))
        return None
    problem = _unobservable(view, trial_id, record)
    if problem:
        outcome.why_not = problem
        return None
    try:
        with _trial_folder(view, trial_id, record) as folder:
            observed = observe_trial(folder, resolved, TrialFacts.from_record(TrialRecord.from_json(record)))
            fresh = grade_trial(observed)
    except CannotRead as error:
        outcome.why_not = error.finding.message  # the step that hashes trial files names it
        return None
    except OSError as error:
        outcome.why_not = f"there is no room to look at a trial of the bundle: {error.strerror}"
        return None
    _compare(fresh.to_json(), stored, path, outcome, same_rules)
    return fresh, observed


def _is_newer(version: str) -> bool:
    """Whether a run says that a later labaudit sealed it, whose rules this one cannot know.

    All versions so far grade alike, so naming an older one is no way around this check.
    """
    return _numbers(version) > _numbers(__version__)


def _numbers(version: str) -> tuple[int, ...]:
    match = _VERSION.match(version)
    return tuple(int(number) for number in match.groups()) if match else ()


def _status(observed: ObservedTrial, resolved: ResolvedExperiment) -> tuple[str, str]:
    """Lost, excluded (no manifest that counts, or a violation that invalidates) or included; and by which rule."""
    if observed.lost:
        return "lost", "L1"
    if observed.manifest.hard_failure:
        return "excluded", "X1"
    violations = observed.violations
    violated = not isinstance(violations, NotObserved) and violations.profile_invariant
    if violated and resolved.design.fail_on_profile_invariant_violation:
        return "excluded", "X2"
    return "included", "I1"


def _unobservable(view: RunView, trial_id: str, record: Json) -> str:
    """Why a trial is not observed: something in its folder is not what the record lists, which other steps report."""
    listed = {entry["path"]: entry["size"] for entry in record["files"]}
    packed = not view.source.root.is_dir()
    for name, size in listed.items():
        path = f"trials/{trial_id}/{name}"
        if (size > MAX_OBSERVED and name in _READ_WHOLE) or (size > MAX_COPIED and name in _READ_BY_LINE and packed):
            return f"{path} is too large to observe"
        try:
            if view.source.size(path) != size:
                return f"{path} has not the size that its record gives"
        except CannotRead as error:
            return error.finding.message
    waiting, found = [""], set()
    while waiting:
        folder = waiting.pop()
        try:
            entries = view.source.entries(f"trials/{trial_id}/{folder}".rstrip("/"))
        except CannotRead as error:
            return error.finding.message
        for entry in entries:
            name = f"{folder}/{entry.name}".lstrip("/")
            if entry.kind == "folder":
                waiting.append(name)
            elif entry.kind != "file":
                return f"trials/{trial_id}/{name} is no regular file"
            else:
                found.add(name)
    if found != {*listed, "trial_record.json"}:
        return f"the files of trial {trial_id} are not those of its record"
    return ""


@contextmanager
def _trial_folder(view: RunView, trial_id: str, record: Json) -> Iterator[TrialFolder]:
    """The trial's folder; out of a bundle what is read of it is copied to a place that vanishes afterwards."""
    root = view.source.root
    if root.is_dir():
        yield TrialFolder(root / "trials" / trial_id)
        return
    with tempfile.TemporaryDirectory(prefix="labaudit-verify-") as temporary:
        folder = Path(temporary) / trial_id
        for entry in record["files"]:
            target = folder / entry["path"]
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as copy:
                if entry["path"] in _READ_WHOLE | _READ_BY_LINE:
                    _copy(view, f"trials/{trial_id}/{entry['path']}", copy)
                else:
                    copy.truncate(entry["size"])  # of the others only their being there is looked at
        yield TrialFolder(folder)


def _copy(view: RunView, path: str, target: BinaryIO) -> None:
    with view.source.open(path) as stream:
        while chunk := stream.read(1 << 20):
            target.write(chunk)


def _comparisons(view: RunView) -> Comparisons | None:
    value = view.document("analysis/comparisons.json")
    try:
        return None if value is None else Comparisons.from_json(value)
    except LabauditError:
        return None


def _compare(fresh: Any, stored: Json, path: str, outcome: _Outcome, same_rules: bool) -> None:
    if fresh == stored:
        return
    higher = [name for name, scale in SCALES.items() if _rank(stored, name, scale) > _rank(fresh, name, scale)]
    if higher:
        name = higher[0]
        what = f"{name} is {stored[name]['value']}, the evidence gives {fresh[name]['value']}"
        outcome.findings.append(Finding("grade_mismatch", path, what))
    elif same_rules:
        keys = sorted(key for key in fresh.keys() | stored.keys() if fresh.get(key) != stored.get(key))
        outcome.findings.append(Finding("grade_mismatch", path, f"{', '.join(keys)} is not what the evidence gives"))
    else:
        outcome.other_rules = True


def _rank(grades: Json, name: str, scale: tuple[str, ...]) -> int:
    return scale.index(grades[name]["value"])
