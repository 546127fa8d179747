"""An attempt whose log is sealed to a trial of the run, from its stored files alone.

A result that was judged is never measured again: whoever finds a sealed attempt, the runner that made it or one that
resumes after a crash, finishes it the same way. Only an attempt that was not sealed can be lost.
"""

from __future__ import annotations

from typing import Any

from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput
from labaudit.evidence.observe import observe_trial
from labaudit.evidence.trial_facts import TrialFacts
from labaudit.evidence.trial_record import artifact_lines
from labaudit.grading.grades import grade_trial
from labaudit.planning.schedule import PlannedTrial
from labaudit.records.fields import EvidenceOrigin
from labaudit.records.metrics import Metrics
from labaudit.records.receipt import Receipt
from labaudit.records.trial_record import TrialRecord
from labaudit.runner.commit import LOST, close_lost_attempt, commit, log_identity, staging, trial_ids
from labaudit.runner.context import RunContext
from labaudit.store import atomic
from labaudit.store.event_log import SEALED, EventLog, read_events, read_lines, valid_prefix
from labaudit.store.run_folder import TrialFolder


def seal_attempt(
    ctx: RunContext, trial: TrialFolder, log: EventLog, inventory: dict[str, Any], references: dict[str, str]
) -> None:
    """Writes what only the attempt knows, then seals its log: from then on its files say everything."""
    atomic.write_json(trial.state_inventory, inventory, durable=False)
    list_artifacts(ctx, trial, references)
    log.seal(trial.events_head)


def list_artifacts(ctx: RunContext, trial: TrialFolder, references: dict[str, str]) -> None:
    """The attempt's own `artifacts.jsonl`; the commit adds what lost attempts refer to."""
    lines: list[object] = list(artifact_lines(ctx.run.artifacts, references))
    atomic.write_lines(trial.artifacts, lines, durable=False)


def finish_sealed(ctx: RunContext, planned: PlannedTrial, attempt: int, origin: EvidenceOrigin) -> TrialRecord:
    """Level, grades and record of a sealed attempt, and its commit."""
    trial = TrialFolder(staging(ctx, planned, attempt))
    outcome = Metrics.from_bytes(atomic.read_bytes(trial.metrics), where=str(trial.metrics)).outcome
    facts = TrialFacts(
        ids=trial_ids(ctx, planned),
        attempt=attempt,
        resolved_digest=ctx.resolved_digest,
        status="completed",
        outcome=outcome,
        evidence_origin=origin,
    )
    observed = observe_trial(trial, ctx.resolved, facts)
    if not trial.receipt.is_file():
        # The level is derived from all other evidence, the rest of the inventory included; a worker has signed its own.
        inventory = parse_object(atomic.read_bytes(trial.state_inventory), where=str(trial.state_inventory))
        level = observed.level.observed
        if level not in {"not_observed", inventory["integration_level"]}:
            atomic.write_json(trial.state_inventory, {**inventory, "integration_level": level}, durable=False)
    atomic.write_bytes(trial.grades, grade_trial(observed).to_bytes(), durable=False)
    rows = (parse_object(line, where=str(trial.artifacts)) for line in read_lines(trial.artifacts))
    return commit(
        ctx,
        planned,
        attempt,
        status="completed",
        outcome=outcome,
        times=_times(trial),
        references={str(row["ref"]): str(row["role"]) for row in rows},
        origin=origin,
    )


def conclude(ctx: RunContext, planned: PlannedTrial, attempt: int, reason: str) -> TrialRecord | None:
    """Ends an attempt that did not commit: the record of one that was sealed with a result, None of a lost one."""
    trial = TrialFolder(staging(ctx, planned, attempt))
    atomic.remove_leftovers(trial.path)
    identity = log_identity(ctx, planned, attempt)
    if not has_result(trial) or valid_prefix(trial.events, identity)[0] != trial.events.stat().st_size:
        close_lost_attempt(ctx, planned, attempt, reason)
        return None
    log, _ = EventLog.recover(trial.events, identity, clock=ctx.clock)
    log.seal(trial.events_head)  # the crash may have come between the last event and the head
    return finish_sealed(ctx, planned, attempt, "worker" if trial.receipt.is_file() else "local")


def has_result(trial: TrialFolder) -> bool:
    """Whether the attempt ended with a result: its log is sealed and says of no loss, its files are there."""
    needed = (trial.metrics, trial.run_record, trial.state_inventory, trial.artifacts, trial.events)
    if not all(path.is_file() for path in needed):
        return False
    try:
        types = [event["event_type"] for event in read_events(trial.events)]
    except BadInput:
        return False
    return bool(types) and types[-1] == SEALED and LOST not in types


def _times(trial: TrialFolder) -> tuple[str | None, str | None]:
    if trial.receipt.is_file():
        receipt = Receipt.from_bytes(atomic.read_bytes(trial.receipt), where=str(trial.receipt))
        return receipt.started_at, receipt.ended_at
    run_record = parse_object(atomic.read_bytes(trial.run_record), where=str(trial.run_record))
    return str(run_record["startedAt"]), str(run_record["completedAt"])
