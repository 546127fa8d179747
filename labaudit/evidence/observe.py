"""A trial folder to the one value that grades are computed from; nothing but stored files is read.

The runner calls this when the event log is sealed, a verifier calls it on what it was given: the same files give the
same value, so a grade can be recomputed by anyone.
"""

from __future__ import annotations

from collections.abc import Mapping

from labaudit.errors import LabauditError
from labaudit.evidence.boundaries import BoundaryRecord, judge_boundaries
from labaudit.evidence.control_history import read_control_history
from labaudit.evidence.harness_manifest import HarnessManifest
from labaudit.evidence.hook_collector import HookCollector, HookCounts, HookStream
from labaudit.evidence.hook_rules import ControlWrite
from labaudit.evidence.integration_level import IntegrationLevelResolver, LevelEvidence
from labaudit.evidence.observation import (
    Coverage,
    HookFinding,
    NotObserved,
    ObservedHooks,
    ObservedLevel,
    ObservedManifest,
    ObservedSdk,
    ObservedTraces,
    ObservedTrial,
    ObservedWorker,
)
from labaudit.evidence.observe_files import (
    checkpoint_labels,
    observe_events,
    observe_inventory,
    observe_network,
    observe_traces,
    observe_violations,
)
from labaudit.evidence.trial_facts import NO_INVENTORY, StoredFacts, TrialFacts, read_ext
from labaudit.records import document_rules
from labaudit.records.fields import EvidenceSource
from labaudit.records.receipt import Receipt
from labaudit.records.resolved import ResolvedExperiment
from labaudit.store import atomic
from labaudit.store.run_folder import TrialFolder

STRICT_PROFILE = "replay_strict_v2"
_NO_STREAM = NotObserved("no hook stream")


def observe_trial(trial: TrialFolder, resolved: ResolvedExperiment, facts: TrialFacts) -> ObservedTrial:
    """The observation of one trial. Files that are missing or broken are answers, never errors."""
    inventory = observe_inventory(trial)
    stored = NO_INVENTORY if isinstance(inventory, NotObserved) else read_ext(inventory.ext)
    manifest, observed_manifest = _manifest(trial, resolved, stored)
    stream, boundaries, hooks = _hooks(trial, resolved, facts, manifest, stored)
    traces = observe_traces(trial, facts.ids)
    sdk = _sdk(manifest, stream, boundaries)
    events = observe_events(trial, facts)
    network = inventory if isinstance(inventory, NotObserved) else observe_network(trial, inventory)
    # Only an allowlist has a proxy; an empty log of a trial without one is no evidence of anything.
    proxy = (
        not isinstance(network, NotObserved)
        and network.events_present
        and network.mode_effective == "allowlist_enforced"
    )
    decisions = 0
    if proxy and not isinstance(network, NotObserved):
        decisions = sum(n for n in (network.allowed, network.blocked) if not isinstance(n, NotObserved))
    spans = traces.span_count if isinstance(traces.span_count, int) else 0
    imported = facts.evidence_origin == "imported"
    calls = _calls(stream)
    sources: dict[EvidenceSource, Coverage] = {
        # The log of an imported trial tells of the import; nothing in it was seen while the trial ran.
        "framework_events": Coverage(False)
        if imported
        else Coverage(events.present and events.chain_ok, events.count, events.count),
        "hooks": Coverage(hooks.present and hooks.valid, hooks.event_count if hooks.valid else 0, hooks.event_count),
        "traces": Coverage(spans > 0, spans, spans),
        "sdk": Coverage(sdk.present, min(sdk.boundaries_recorded, calls), calls),
        "network_proxy": Coverage(proxy, decisions, decisions),
        "imported": Coverage(imported, int(imported), int(imported)),
    }
    return ObservedTrial(
        ids=facts.ids,
        outcome=facts.outcome if facts.outcome is not None else NotObserved("the trial has no outcome"),
        lost=facts.status == "lost",
        attempts=facts.attempt,
        evidence_origin=facts.evidence_origin,
        profile=resolved.design.sanitization_profile,
        end_cause=stored.end_cause,
        level=_level(resolved, facts, observed_manifest, manifest, stream, hooks, traces, sdk),
        sources=sources,
        manifest=observed_manifest,
        hooks=hooks,
        traces=traces,
        sdk=sdk,
        network=network,
        violations=inventory if isinstance(inventory, NotObserved) else observe_violations(inventory),
        unenforced=stored.unenforced,
        events=events,
        engine=stored.engine,
        worker=_worker(trial, resolved, facts),
        checkpoints=checkpoint_labels(trial),
        state_ext={} if isinstance(inventory, NotObserved) else inventory.ext or {},
    )


def _worker(trial: TrialFolder, resolved: ResolvedExperiment, facts: TrialFacts) -> ObservedWorker | None:
    """Who signed for a worker's trial; the signature itself is the ingest's and the verifier's to check."""
    if facts.evidence_origin != "worker" or facts.status == "lost":
        return None
    try:
        receipt = Receipt.from_bytes(atomic.read_bytes(trial.receipt), where="receipt.json")
    except LabauditError as error:
        return ObservedWorker("unknown", "unknown", False, error.what)
    return ObservedWorker(receipt.worker_id, receipt.key_id, receipt.key_id in resolved.executor.trusted_workers)


def _manifest(
    trial: TrialFolder, resolved: ResolvedExperiment, stored: StoredFacts
) -> tuple[HarnessManifest | None, ObservedManifest]:
    manifest, problem = None, ""
    present = trial.harness_manifest.is_file()
    try:
        manifest = HarnessManifest.load(trial.harness_manifest) if present else None
    except LabauditError as error:
        problem = error.what
    if not present:
        problem = "harness_manifest.json is missing"
    notes = document_rules.check_harness_manifest(manifest.record.to_json()) if manifest else []
    return manifest, ObservedManifest(
        present=present,
        valid=manifest is not None,
        required=resolved.runtime.harness.integration_level != "cli_basic",
        missing_allowed=stored.missing_manifest_allowed,
        problem=problem,
        notes=tuple(f"{note.message} [{note.rule}]" for note in notes),
    )


def _hooks(
    trial: TrialFolder,
    resolved: ResolvedExperiment,
    facts: TrialFacts,
    manifest: HarnessManifest | None,
    stored: StoredFacts,
) -> tuple[HookStream | None, BoundaryRecord, ObservedHooks]:
    strict = resolved.design.sanitization_profile == STRICT_PROFILE
    nothing = BoundaryRecord(False, problem="no causal boundary was recorded")
    if not trial.harness_events.is_file():
        return None, nothing, _no_stream(manifest, strict)
    stream = HookCollector().collect(
        trial.harness_events,
        manifest,
        facts.ids,
        _control_history(trial),
        strict=strict,
        cut_short=stored.cut_short,
    )
    boundaries = nothing
    if stream.valid and trial.boundaries.is_file():
        boundaries = judge_boundaries(trial.boundaries, trial.harness_events, facts.ids.to_json())
    return stream, boundaries, observed_hooks(stream)


def _control_history(trial: TrialFolder) -> tuple[ControlWrite, ...] | None:
    try:
        return read_control_history(trial.control_log)
    except LabauditError:
        # A log that contradicts itself vouches for nothing; acks then stay unverified.
        return None


def _no_stream(manifest: HarnessManifest | None, strict: bool) -> ObservedHooks:
    if manifest is None or manifest.record.hooks is None:
        return ObservedHooks(present=False, valid=False, strict=strict)
    told = f"the manifest declares {manifest.record.hooks.events_path}, and it is not there"
    finding = HookFinding(0, "F3", "a_declared_stream_is_there", "invalidates", told)
    return ObservedHooks(False, False, strict, findings=(finding,), findings_total=1, findings_by_rule={"F3": 1})


def observed_hooks(stream: HookStream) -> ObservedHooks:
    """A judged stream as the value that grades read."""
    counts = stream.counts
    known = counts if isinstance(counts, HookCounts) else None
    unknown = counts if isinstance(counts, NotObserved) else _NO_STREAM
    unverified = NotObserved("nobody knows what the runner wrote into the control file")
    return ObservedHooks(
        present=True,
        valid=stream.valid,
        strict=stream.strict,
        event_count=stream.events,
        findings=stream.findings,
        findings_total=stream.findings_total,
        findings_by_rule=stream.findings_by_rule,
        turn_count=known.turn_count if known else unknown,
        step_count=known.step_count if known else unknown,
        tool_calls=known.tool_calls if known else unknown,
        tokens_in=known.tokens_in if known else unknown,
        tokens_out=known.tokens_out if known else unknown,
        errors=known.errors if known else unknown,
        acks_missing=stream.acks_missing,
        acks_verified=(known.acks if stream.control_checked else unverified) if known else unknown,
        causal_events=known.causal_events if known else unknown,
        causal_without_step=known.causal_without_step if known else unknown,
        stopped=known.stopped if known else unknown,
        checkpoints_acked=known.checkpoints_acked if known else unknown,
    )


def _calls(stream: HookStream | None) -> int:
    if stream is None or isinstance(stream.counts, NotObserved):
        return 0
    turns = stream.counts.turn_count
    return stream.counts.tool_calls + (turns if isinstance(turns, int) else 0)


def _sdk(manifest: HarnessManifest | None, stream: HookStream | None, boundaries: BoundaryRecord) -> ObservedSdk:
    claims = manifest is not None and manifest.level in ("sdk_control", "sdk_full")
    counts = stream.counts if stream is not None else _NO_STREAM
    callbacks = counts if isinstance(counts, NotObserved) else counts.acks_with_action_taken
    return ObservedSdk(
        present=claims and not isinstance(counts, NotObserved),
        control_callbacks=callbacks,
        boundaries_recorded=boundaries.recorded,
        boundaries_complete=boundaries.complete,
        problem=boundaries.problem,
    )


def _level(
    resolved: ResolvedExperiment,
    facts: TrialFacts,
    observed: ObservedManifest,
    manifest: HarnessManifest | None,
    stream: HookStream | None,
    hooks: ObservedHooks,
    traces: ObservedTraces,
    sdk: ObservedSdk,
) -> ObservedLevel:
    acked = hooks.valid and hooks.acks_missing == 0 and isinstance(hooks.acks_verified, int) and hooks.acks_verified > 0
    evidence = LevelEvidence(
        ran=facts.status == "completed" and facts.evidence_origin != "imported",
        claimed=manifest.level if manifest is not None else None,
        manifest_problem=observed.problem,
        hooks_valid=hooks.valid,
        hook_events=_events_apart_from_the_header(stream),
        hooks_problem=_hooks_problem(stream, hooks),
        steps=hooks.step_count if isinstance(hooks.step_count, int) else 0,
        acks_verified=acked,
        control_declared=manifest is not None and manifest.declares_control,
        span_count=traces.span_count if isinstance(traces.span_count, int) else 0,
        boundaries=sdk.boundaries_recorded,
        boundaries_complete=sdk.boundaries_complete,
        boundaries_problem=sdk.problem,
    )
    derived = IntegrationLevelResolver().explain(evidence)
    return ObservedLevel(
        expected=resolved.runtime.harness.integration_level,
        claimed=evidence.claimed,
        observed=derived.level,
        why=derived.why,
        caps=derived.caps,
    )


def _events_apart_from_the_header(stream: HookStream | None) -> int:
    if stream is None or isinstance(stream.counts, NotObserved):
        return 0
    return stream.events - stream.counts.header


def _hooks_problem(stream: HookStream | None, hooks: ObservedHooks) -> str:
    if stream is None:
        return hooks.findings[0].sentence if hooks.findings else "there is no hook stream"
    return "" if stream.valid else f"the hook stream is {stream.verdict}"


def summary_line(observed: ObservedTrial) -> Mapping[str, object]:
    """Level, turn count and stream verdict of a trial, for progress lines and logs."""
    turns = observed.hooks.turn_count
    return {
        "trial_id": observed.ids.trial_id,
        "level": observed.level.observed,
        "turn_count": turns if isinstance(turns, int) else None,
        "hooks": "valid" if observed.hooks.valid else "invalid" if observed.hooks.present else "absent",
    }
