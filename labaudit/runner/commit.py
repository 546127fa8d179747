"""A staged attempt to a trial of the run: its record is written last and one rename makes it visible.

Earlier attempts that were lost move in with it under `attempts/<n>/`, each with its own sealed event log.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from labaudit.core.canonical import canonical_bytes
from labaudit.evidence.trial_record import artifact_lines, build_trial_record
from labaudit.planning.schedule import PlannedTrial
from labaudit.records.fields import EvidenceOrigin
from labaudit.records.ids import Ids
from labaudit.records.trial_record import TrialRecord
from labaudit.runner.context import RunContext
from labaudit.store import atomic
from labaudit.store.event_log import EventLog, LogIdentity, read_events
from labaudit.store.run_folder import TrialFolder

ATTEMPT = "attempt-"
LOST = "attempt.lost"


def log_identity(ctx: RunContext, planned: PlannedTrial, attempt: int) -> LogIdentity:
    """What the event log of this attempt is bound to."""
    return LogIdentity(
        run_id=ctx.run_id,
        trial_id=planned.trial_id,
        variant_id=planned.variant_id,
        task_id=planned.task_id,
        repl_idx=planned.repl_idx,
        attempt=attempt,
        resolved_digest=ctx.resolved_digest,
    )


def trial_ids(ctx: RunContext, planned: PlannedTrial) -> Ids:
    """The ids that every record of the trial carries."""
    return Ids(
        run_id=ctx.run_id,
        trial_id=planned.trial_id,
        variant_id=planned.variant_id,
        task_id=planned.task_id,
        repl_idx=planned.repl_idx,
    )


def staging(ctx: RunContext, planned: PlannedTrial, attempt: int) -> Path:
    """Where an attempt's files grow."""
    return ctx.live / planned.trial_id / f"{ATTEMPT}{attempt}"


def earlier_attempts(ctx: RunContext, planned: PlannedTrial) -> list[int]:
    """Numbers of the attempts that were staged and never committed."""
    folder = ctx.live / planned.trial_id
    if not folder.is_dir():
        return []
    names = (path.name for path in folder.iterdir() if path.name.startswith(ATTEMPT))
    return sorted(int(name.removeprefix(ATTEMPT)) for name in names if name.removeprefix(ATTEMPT).isdigit())


def close_lost_attempt(ctx: RunContext, planned: PlannedTrial, attempt: int, reason: str) -> None:
    """Makes a half-done attempt evidence: its log recovered to a valid prefix, the loss said, the log sealed."""
    folder = TrialFolder(staging(ctx, planned, attempt))
    atomic.remove_leftovers(folder.path)
    if folder.events_head.is_file():
        return
    log, dropped = EventLog.recover(folder.events, log_identity(ctx, planned, attempt), clock=ctx.clock)
    # Killed between the last event and the head, a log is sealed already: it takes its head and no more events.
    if not log.sealed:
        payload = ctx.run.artifacts.put(
            canonical_bytes({"reason": reason, "torn_bytes_dropped": dropped}), "application/json"
        )
        log.append(LOST, payload_ref=payload)
    log.seal(folder.events_head)


def logged_references(log: Path) -> set[str]:
    """The artifacts that an event log names."""
    return {str(event["payload_ref"]) for event in read_events(log) if "payload_ref" in event}


def commit(
    ctx: RunContext,
    planned: PlannedTrial,
    attempt: int,
    *,
    status: str,
    outcome: str | None,
    times: tuple[str | None, str | None],
    references: Mapping[str, str],
    origin: EvidenceOrigin,
) -> TrialRecord:
    """Writes `artifacts.jsonl` and `trial_record.json`, and moves the attempt into the run.

    `references` maps each artifact of the attempt to its role; those of lost attempts are found in their logs.
    """
    staged = TrialFolder(staging(ctx, planned, attempt))
    known = dict(references)
    for number in earlier_attempts(ctx, planned):
        if number != attempt:
            target = staged.attempt(number)
            target.parent.mkdir(parents=True, exist_ok=True)
            staging(ctx, planned, number).rename(target)
    for log in sorted(staged.attempts.glob("*/events.jsonl")):
        for reference in logged_references(log):
            known.setdefault(reference, "lost attempt")
    lines: list[object] = list(artifact_lines(ctx.run.artifacts, known))
    atomic.write_lines(staged.artifacts, lines, durable=False)
    record = build_trial_record(
        staged,
        ctx.run.artifacts,
        ids=trial_ids(ctx, planned),
        index=planned.index,
        attempt=attempt,
        status=status,
        outcome=outcome,
        resolved=ctx.resolved,
        resolved_digest=ctx.resolved_digest,
        started_at=times[0],
        ended_at=times[1],
        evidence_origin=origin,
    )
    atomic.write_bytes(staged.trial_record, record.to_bytes())
    final = ctx.run.trial(planned.trial_id)
    try:
        final.path.parent.mkdir(parents=True, exist_ok=True)
        os.rename(staged.path, final.path)  # noqa: PTH104 - one atomic step
    except OSError as error:
        raise atomic.explain(error, final.path) from error
    atomic.sync_folder(final.path.parent)
    shutil.rmtree(ctx.live / planned.trial_id, ignore_errors=True)
    return record
