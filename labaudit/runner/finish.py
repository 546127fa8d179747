"""A run whose trials are all there to its `inclusion.json`, run grades and the list of left-over artifacts.

One pass over the trials observes each from its stored files, as a verifier would; memory stays flat.
"""

from __future__ import annotations

from collections.abc import Mapping

from labaudit.core.strict_json import parse_object
from labaudit.evidence.observe import observe_trial
from labaudit.evidence.trial_facts import TrialFacts
from labaudit.evidence.trial_record import artifact_lines
from labaudit.grading.grades import RunGrader
from labaudit.records.comparisons import Comparisons
from labaudit.records.grades import Grades
from labaudit.records.inclusion import Inclusion
from labaudit.records.resolved import ResolvedExperiment
from labaudit.records.trial_record import TrialRecord
from labaudit.runner.inclusion import inclusion, judge, lost_reason, row
from labaudit.runner.run_start import read_schedule
from labaudit.store import atomic
from labaudit.store.event_log import read_lines
from labaudit.store.run_folder import RunFolder


def include_trials(run: RunFolder, run_id: str, resolved: ResolvedExperiment) -> tuple[Inclusion, RunGrader]:
    """Observes every trial, and returns the inclusion with a grader that has seen them all."""
    grader = RunGrader()
    invalidate = resolved.design.fail_on_profile_invariant_violation
    rows = []
    for planned in read_schedule(run):
        trial = run.trial(planned.trial_id)
        record = TrialRecord.from_bytes(atomic.read_bytes(trial.trial_record), where=str(trial.trial_record))
        observed = observe_trial(trial, resolved, TrialFacts.from_record(record))
        graded = Grades.from_bytes(atomic.read_bytes(trial.grades), where=str(trial.grades))
        grader.add(graded, observed)
        judgement = judge(
            observed,
            violations_invalidate=invalidate,
            lost_reason=lambda trial_id=planned.trial_id: lost_reason(run, trial_id),  # type: ignore[misc]
        )
        rows.append(row(planned, observed, judgement))
    return inclusion(run_id, rows), grader


def grade_run(run: RunFolder, run_id: str, grader: RunGrader, included: Inclusion) -> Grades:
    """The run's grades, from its trials and the comparisons that the analysis wrote."""
    comparisons = None
    if run.comparisons.is_file():
        comparisons = Comparisons.from_bytes(atomic.read_bytes(run.comparisons), where=str(run.comparisons))
    return grader.grades(run_id, included, comparisons)


def list_other_artifacts(run: RunFolder, roles: Mapping[str, str]) -> None:
    """The run's own `artifacts.jsonl`: objects that no trial lists (dataset, source, self-test, lost attempts)."""
    listed: set[str] = set()
    for planned in read_schedule(run):
        path = run.trial(planned.trial_id).artifacts
        if path.is_file():
            listed.update(str(parse_object(line)["ref"]) for line in read_lines(path))
    known = {reference for reference in run.artifacts.references() if reference not in listed}
    others = {reference: roles.get(reference, "run") for reference in known}
    lines: list[object] = list(artifact_lines(run.artifacts, others))
    atomic.write_lines(run.artifact_list, lines)
