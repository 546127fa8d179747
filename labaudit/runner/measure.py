"""A trial's outcome and outputs to `metrics.json`, `run_record.json` and `score_records.jsonl`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labaudit.contracts.module_registry import evaluators_by_type, installed_modules
from labaudit.contracts.trial_mapping import TrialFacts, run_record_from_trial
from labaudit.contracts.trial_scores import score_records_from_metrics, score_records_from_modules
from labaudit.engines.protocol import SandboxLabels, SandboxResult
from labaudit.evaluators.builtin import evaluate
from labaudit.evaluators.command_evaluator import evaluate_by_command
from labaudit.evaluators.measured import assemble_metrics
from labaudit.evaluators.verdict import Value, Verdict
from labaudit.evidence.hook_collector import HookStream
from labaudit.evidence.observation import NotObserved
from labaudit.planning.schedule import PlannedTrial
from labaudit.records.ids import Ids
from labaudit.records.metrics import Metrics
from labaudit.runner.context import RunContext
from labaudit.runner.outcome import TrialOutcome
from labaudit.runner.sandbox_plan import limits_of


@dataclass(frozen=True)
class Measured:
    """The metrics, and what each evaluator said about its own."""

    metrics: Metrics
    verdicts: Mapping[str, Sequence[Verdict]]

    @property
    def explanations(self) -> dict[str, tuple[str, Sequence[str]]]:
        """Metric to the sentence and snippets of the evaluator that gave it."""
        sources = self.metrics.sources
        return {
            verdict.metric: (verdict.explanation, verdict.snippets)
            for evaluator_id, given in self.verdicts.items()
            for verdict in given
            if sources.get(verdict.metric) == f"evaluator:{evaluator_id}"
        }


def measure(
    ctx: RunContext,
    planned: PlannedTrial,
    ids: Ids,
    attempt: int,
    decided: TrialOutcome,
    output: Mapping[str, Any] | None,
    collected: Path,
    framework: Mapping[str, Value | None],
) -> Measured:
    """Runs every evaluator on the collected outputs and gathers all values."""
    task = ctx.task(planned.task_id)
    verdicts: dict[str, list[Verdict]] = {}
    for config in ctx.resolved.evaluators:
        if config.type == "command" and output is not None and decided.outcome not in {"missing", "error"}:
            document = {"ids": ids.to_json(), "task": task, "trial_output": output}
            verdicts[config.id] = evaluate_by_command(
                config,
                engine=ctx.engine,
                image=ctx.image_id,
                labels=SandboxLabels(ctx.run_id, planned.trial_id, attempt),
                limits=limits_of(ctx),
                collected=collected,
                source=ctx.evaluator_sources.get(config.id, ctx.harness_source),
                document=document,
            )
        else:
            verdicts[config.id] = [evaluate(config, task, output, decided.outcome)]
    metrics = assemble_metrics(
        ids=ids,
        outcome=decided.outcome,
        declared=ctx.resolved.metrics,
        verdicts=verdicts,
        harness=_own_metrics(output, decided),
        harness_cause=decided.cause,
        framework=framework,
    )
    return Measured(metrics, verdicts)


def framework_values(result: SandboxResult, hooks: HookStream | None) -> dict[str, Value | None]:
    """What the framework measured itself; counts of hooks only from a valid stream."""
    values: dict[str, Value | None] = {
        "duration_seconds": (result.ended_at - result.started_at).total_seconds(),
        "exit_code": result.exit_code,
    }
    counts = hooks.counts if hooks is not None else None
    if counts is not None and not isinstance(counts, NotObserved):
        values["steps"] = counts.step_count
        values["tool_calls"] = counts.tool_calls
        for name in ("turn_count", "tokens_in", "tokens_out"):
            value = getattr(counts, name)
            values[name] = None if isinstance(value, NotObserved) else value
    return values


def _own_metrics(output: Mapping[str, Any] | None, decided: TrialOutcome) -> dict[str, object]:
    """The harness's metrics; its outcome stands for `success` unless it says otherwise. An error has none."""
    if output is None or decided.outcome == "error":
        return {}
    own: dict[str, object] = {}
    if decided.outcome in {"success", "failure"}:
        own["success"] = decided.outcome == "success"
    own.update(output.get("metrics") or {})
    return own


def records(
    ctx: RunContext,
    planned: PlannedTrial,
    measured: Measured,
    decided: TrialOutcome,
    output: Mapping[str, Any] | None,
    times: tuple[str, str, float],
    events: tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]],
    harness: tuple[str, str | None],
) -> tuple[dict[str, Any], list[dict[str, Any]], list[str]]:
    """The RunRecord, the ScoreRecords, and what a module's evaluator got wrong.

    `times` is (started_at, ended_at, latency in ms), `events` is (framework events, valid hook events).
    """
    variant = next(item for item in ctx.resolved.variants if item.id == planned.variant_id)
    document = measured.metrics.to_json()
    facts = TrialFacts(
        trial_id=planned.trial_id,
        task_id=planned.task_id,
        task=ctx.task(planned.task_id),
        outcome=decided.outcome,
        started_at=times[0],
        ended_at=times[1],
        latency_ms=times[2],
        harness_name=harness[0],
        harness_version=harness[1],
        exec_digest=ctx.resolved.runtime.harness.exec_digest,
        bindings=variant.bindings,
        resolved_digest=ctx.resolved_digest,
        metrics=document,
        trial_output=output,
        hook_events=events[1],
        hooks_complete=bool(events[1]),
        framework_events=events[0],
        # Without a cause the outcome is the harness's own word, and so is the message that goes with it.
        error_message=None if decided.cause is None else decided.reason,
    )
    run = run_record_from_trial(facts)
    scores = score_records_from_metrics(
        document, run_id=planned.trial_id, created_at=times[1], explanations=measured.explanations
    )
    from_modules, problems = score_records_from_modules(facts.task, run, evaluators_by_type(installed_modules()))
    return run, [*scores, *from_modules], problems
