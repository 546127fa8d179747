"""One foreign row to the files of a trial: what it says, its metrics, its contract records, its log and its grades.

Nobody here saw the trial run. So there is no input, no output and no inventory: `imported.json` keeps what the other
tool's files say, the log has the import as its only event, and the grades say `not_observed` where that is the truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from labaudit.contracts.trial_mapping import TrialFacts as RecordFacts
from labaudit.contracts.trial_mapping import run_record_from_trial
from labaudit.contracts.trial_scores import score_records_from_metrics
from labaudit.core.clock import Clock
from labaudit.evidence.observe import observe_trial
from labaudit.evidence.trial_facts import TrialFacts
from labaudit.evidence.trial_record import artifact_lines, build_trial_record
from labaudit.grading.grades import grade_trial
from labaudit.importers.foreign_json import plain
from labaudit.importers.moments import moment_text
from labaudit.importers.plan import ImportPlan
from labaudit.importers.results import ForeignResults, ForeignTrial
from labaudit.planning.schedule import PlannedTrial
from labaudit.records.ids import Ids
from labaudit.store import atomic
from labaudit.store.event_log import EventLog, LogIdentity
from labaudit.store.run_folder import RunFolder, TrialFolder

NOT_OBSERVED = (
    ("isolation", "Another tool ran the trial; how it was contained is not observed."),
    ("replay", "The imported files do not allow a replay."),
    ("network", "No proxy of ours was on the way out."),
    ("times", "Start and end are the other tool's word."),
)


@dataclass(frozen=True)
class ImportContext:
    """What all trials of one import share."""

    run: RunFolder
    plan: ImportPlan
    results: ForeignResults
    references: Mapping[str, str]
    """Name of each source file to its artifact."""
    imported_at: str
    clock: Clock
    durable: bool = True
    """Whether each file is flushed to the disk by itself."""


def write_trial(context: ImportContext, planned: PlannedTrial, row: ForeignTrial) -> None:
    """Writes every file of one trial, the record last."""
    run, plan = context.run, context.plan
    trial = run.trial(planned.trial_id)
    trial.path.mkdir(parents=True)
    ids = Ids(
        run_id=run.run_id,
        trial_id=planned.trial_id,
        variant_id=planned.variant_id,
        task_id=planned.task_id,
        repl_idx=planned.repl_idx,
    )
    sources = [name for name in row.sources if name in context.references]
    atomic.write_json(trial.imported, imported_document(context, row, ids, sources), durable=context.durable)
    metrics = metrics_document(context.results, row, ids)
    atomic.write_json(trial.metrics, metrics, durable=context.durable)
    _write_records(context, trial, planned, row, metrics)
    _write_log(context, trial, ids, sources)
    references = {context.references[name]: "imported source" for name in sources}
    atomic.write_lines(trial.artifacts, list(artifact_lines(run.artifacts, references)), durable=context.durable)
    facts = TrialFacts(ids, 1, str(plan.digest), "completed", row.outcome, "imported")
    grades = grade_trial(observe_trial(trial, plan.resolved, facts))
    atomic.write_bytes(trial.grades, grades.to_bytes(), durable=context.durable)
    record = build_trial_record(
        trial,
        run.artifacts,
        ids=ids,
        index=planned.index,
        attempt=1,
        status="completed",
        outcome=row.outcome,
        resolved=plan.resolved,
        resolved_digest=str(plan.digest),
        started_at=moment_text(row.started_at),
        ended_at=moment_text(row.ended_at),
        evidence_origin="imported",
    )
    atomic.write_bytes(trial.trial_record, record.to_bytes(), durable=context.durable)


def imported_document(context: ImportContext, row: ForeignTrial, ids: Ids, sources: list[str]) -> dict[str, Any]:
    """`imported.json`: what the files say of this trial, and what nobody here observed."""
    results = context.results
    return {
        "schema_version": "imported_trial_v1",
        "ids": ids.to_json(),
        "evidence": "imported",
        "format": results.format,
        "format_version": results.format_version,
        "tool": {"name": results.tool.name, "version": results.tool.version},
        "original_id": row.original_id,
        "variant_label": row.variant,
        "sources": [{"name": name, "ref": context.references[name]} for name in sources],
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "error": row.error,
        "facts": plain(dict(row.facts)),
        "not_observed": [{"what": what, "reason": reason} for what, reason in NOT_OBSERVED],
    }


def metrics_document(results: ForeignResults, row: ForeignTrial, ids: Ids) -> dict[str, Any]:
    """`metrics.json`: every declared metric with a value or the cause of its absence."""
    declared = [metric.name for metric in results.metrics]
    kinds = {metric.name: metric.type for metric in results.metrics}
    values = {name: _typed(row.metrics[name], kinds[name]) for name in declared if name in row.metrics}
    missing = {name: row.missing.get(name, "absent") for name in declared if name not in row.metrics}
    return {
        "schema_version": "metrics_v1",
        "ids": ids.to_json(),
        "outcome": row.outcome,
        "metrics": {**values, **dict.fromkeys(missing)},
        "sources": dict.fromkeys(declared, "imported"),
        "missing": missing,
        "self_reported": [],
    }


def _typed(value: object, kind: str) -> object:
    return int(value) if kind == "binary" and isinstance(value, bool) else value


def _write_records(
    context: ImportContext, trial: TrialFolder, planned: PlannedTrial, row: ForeignTrial, metrics: dict[str, Any]
) -> None:
    results = context.results
    started, ended = moment_text(row.started_at), moment_text(row.ended_at)
    record = run_record_from_trial(
        RecordFacts(
            trial_id=planned.trial_id,
            task_id=planned.task_id,
            task={"id": planned.task_id},
            outcome=row.outcome,
            started_at=started or ended or context.imported_at,
            ended_at=ended or started or context.imported_at,
            latency_ms=(row.seconds or 0.0) * 1000,
            harness_name=results.tool.name,
            harness_version=results.tool.version,
            bindings={"variant": planned.variant_id},
            resolved_digest=str(context.plan.digest),
            metrics=metrics,
            error_message=row.error,
            failed_stage="imported",
        )
    )
    if row.tokens is not None:
        record["metrics"]["tokens"] = row.tokens
    config = record["provenance"]["config"]
    config["evidence"] = "imported"
    config["format"] = results.format
    config["labels"] = {
        "latency": "imported" if row.seconds is not None else "not told, 0 stands for unknown",
        "tokens": "imported" if row.tokens is not None else "absent",
        "cost": "imported" if "cost" in record["metrics"] else "absent",
        "startedAt": "imported" if started else "not told, the time of the import is shown",
        "completedAt": "imported" if ended else "not told",
    }
    atomic.write_json(trial.run_record, record, durable=context.durable)
    created = ended or context.imported_at
    scores = score_records_from_metrics(metrics, run_id=planned.trial_id, created_at=created)
    atomic.write_lines(trial.score_records, list(scores), durable=context.durable)


def _write_log(context: ImportContext, trial: TrialFolder, ids: Ids, sources: list[str]) -> None:
    identity = LogIdentity(**ids.to_json(), attempt=1, resolved_digest=str(context.plan.digest))
    log = EventLog(trial.events, identity, clock=context.clock)
    if not sources:
        log.append("trial.imported", source="imported")
    for name in sources:
        log.append("trial.imported", source="imported", payload_ref=context.references[name])
    log.seal(trial.events_head, durable=context.durable)
