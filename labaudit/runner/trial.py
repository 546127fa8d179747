"""A planned trial to its committed record: attempts until one completes or the retries are used up."""

from __future__ import annotations

import json

from labaudit.core.clock import rfc3339
from labaudit.errors import Interrupted
from labaudit.evidence.observe import observe_trial
from labaudit.evidence.trial_facts import TrialFacts
from labaudit.grading.grades import grade_trial
from labaudit.harnesses.select import select_harness
from labaudit.planning.schedule import PlannedTrial
from labaudit.records.trial_record import TrialRecord
from labaudit.runner.attempt import Attempt, AttemptLost
from labaudit.runner.commit import commit, earlier_attempts, logged_references, staging, trial_ids
from labaudit.runner.context import RunContext
from labaudit.runner.sealed import conclude
from labaudit.store import atomic
from labaudit.store.run_folder import TrialFolder

CRASHED = "the runner ended before the attempt did"


def run_trial(ctx: RunContext, planned: PlannedTrial) -> TrialRecord | None:
    """The trial's record; None when the run is being interrupted and the trial must be run again later.

    What an earlier runner left is taken over first. An attempt number is never used twice, and a sealed result is never
    measured again.
    """
    number, record = take_over(ctx, planned)
    # Interruptions do not use up retries: nobody's infrastructure failed.
    failures = 0
    while record is None and not ctx.stop.is_set():
        number += 1
        try:
            return Attempt(ctx, planned, number, select_harness(ctx.resolved)).run()
        except AttemptLost as lost:
            record = conclude(ctx, planned, number, lost.reason)
            failures += 1
            if record is None and not ctx.stop.is_set() and failures > ctx.resolved.design.retries.infra:
                return give_up(ctx, planned, number)
        except Interrupted:
            return conclude(ctx, planned, number, "the run was interrupted")
    return record


def take_over(ctx: RunContext, planned: PlannedTrial) -> tuple[int, TrialRecord | None]:
    """The last attempt's number of a trial that an earlier runner began (else 0), and its record if one was sealed."""
    number = 0
    for number in earlier_attempts(ctx, planned):
        if (record := conclude(ctx, planned, number, CRASHED)) is not None:
            return number, record
    return number, None


def give_up(ctx: RunContext, planned: PlannedTrial, number: int) -> TrialRecord:
    """A lost trial is a trial of the run: its last attempt stands for it, with what there is of evidence."""
    trial = TrialFolder(staging(ctx, planned, number))
    ids = trial_ids(ctx, planned)
    facts = TrialFacts(ids=ids, attempt=number, resolved_digest=ctx.resolved_digest, status="lost", outcome=None)
    for name in (trial.trial_output, trial.metrics, trial.run_record, trial.score_records):
        # Half-measured files of a trial that has no result would read as one.
        name.unlink(missing_ok=True)
    atomic.write_bytes(trial.grades, grade_trial(observe_trial(trial, ctx.resolved, facts)).to_bytes(), durable=False)
    now = rfc3339(ctx.clock.now())
    started = _first_time(trial) or now
    references = dict.fromkeys(logged_references(trial.events), "lost attempt")
    return commit(
        ctx, planned, number, status="lost", outcome=None, times=(started, now), references=references,
        origin=ctx.evidence_origin,
    )  # fmt: skip


def _first_time(trial: TrialFolder) -> str | None:
    with trial.events.open("rb") as stream:
        line = stream.readline()
    value = json.loads(line) if line else {}
    return str(value["ts"]) if "ts" in value else None
