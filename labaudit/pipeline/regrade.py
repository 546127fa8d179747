"""A run's stored evidence to grades once more, and where they differ from the recorded ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from labaudit.errors import BadInput
from labaudit.evidence.observe import observe_trial
from labaudit.evidence.trial_facts import TrialFacts
from labaudit.grading.grades import RunGrader, grade_trial
from labaudit.records.grades import Grades
from labaudit.records.trial_record import TrialRecord
from labaudit.runner.finish import grade_run
from labaudit.runner.inclusion import inclusion, judge, lost_reason, row
from labaudit.runner.run_start import read_resolved, read_schedule
from labaudit.store import atomic
from labaudit.store.run_folder import RunFolder


@dataclass(frozen=True)
class Regraded:
    """The recomputed grades and the files whose recorded grades are others."""

    run: Grades
    trials: int
    differing: tuple[str, ...]


def regrade(run: RunFolder, run_id: str, out: Path | None = None) -> Regraded:
    """Recomputes all grades from evidence; a sealed run is read only, `out` gets the recomputed files."""
    if not run.inclusion.is_file():
        raise BadInput("the run is not finished", where=str(run.path), hint=f"labaudit resume {run.run_id}")
    resolved, _ = read_resolved(run)
    grader, rows, differing = RunGrader(), [], []
    for planned in read_schedule(run):
        trial = run.trial(planned.trial_id)
        record = TrialRecord.from_bytes(atomic.read_bytes(trial.trial_record), where=str(trial.trial_record))
        observed = observe_trial(trial, resolved, TrialFacts.from_record(record))
        graded = grade_trial(observed)
        grader.add(graded, observed)
        if atomic.read_bytes(trial.grades) != graded.to_bytes():
            differing.append(f"trials/{planned.trial_id}/grades.json")
        judgement = judge(
            observed,
            violations_invalidate=resolved.design.fail_on_profile_invariant_violation,
            lost_reason=lambda trial_id=planned.trial_id: lost_reason(run, trial_id),  # type: ignore[misc]
        )
        rows.append(row(planned, observed, judgement))
        if out is not None:
            atomic.write_bytes(out / "trials" / planned.trial_id / "grades.json", graded.to_bytes())
    included = inclusion(run_id, rows)
    if atomic.read_bytes(run.inclusion) != included.to_bytes():
        differing.append("inclusion.json")
    grades = grade_run(run, run_id, grader, included)
    if not run.grades.is_file() or atomic.read_bytes(run.grades) != grades.to_bytes():
        differing.append("grades.json")
    if out is not None:
        atomic.write_bytes(out / "grades.json", grades.to_bytes())
        atomic.write_bytes(out / "inclusion.json", included.to_bytes())
    return Regraded(grades, len(rows), tuple(differing))
