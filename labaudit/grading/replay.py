"""The observed integration level and its evidence to the replay grade: strict > checkpointed > best_effort > none."""

from __future__ import annotations

from collections.abc import Iterator

from labaudit.evidence.observation import NotObserved, ObservedTrial
from labaudit.grading.scale import CapFinding, grade
from labaudit.records.grades import Grade

BY_LEVEL = {
    "sdk_full": "strict",
    "sdk_control": "checkpointed",
    "cli_events": "best_effort",
    "otel": "best_effort",
    "cli_basic": "none",
    "not_observed": "not_observed",
}


def grade_replay(observed: ObservedTrial) -> Grade[str]:
    """The grade of one trial."""
    sources = [name for name in ("hooks", "traces", "sdk") if observed.sources[name].present]
    return grade("replay", _caps(observed), sources)  # type: ignore[arg-type]


def _caps(observed: ObservedTrial) -> Iterator[CapFinding]:
    level = observed.level
    if observed.evidence_origin == "imported":
        yield CapFinding(
            "R01", "not_observed", "trial_record.json", "Another tool ran this trial; it cannot be replayed here."
        )
        return
    to = BY_LEVEL[level.observed]
    if to != "strict":
        yield CapFinding(
            "R02", to, "harness_manifest.json", f"Observed integration level {level.observed}: {level.why}."
        )
    if observed.manifest.required and not observed.manifest.valid:
        why = observed.manifest.problem or "harness_manifest.json is missing"
        yield CapFinding("R03", "none", "harness_manifest.json", f"The harness manifest does not count: {why}.")
    hooks = observed.hooks
    if hooks.present and not hooks.valid:
        said = f"The hook stream breaks {hooks.findings_total} rule(s); nothing is counted from it."
        yield CapFinding("R04", "none", "harness_events.jsonl", said)
    if not isinstance(hooks.acks_missing, NotObserved) and hooks.acks_missing:
        said = f"{hooks.acks_missing} step end(s) have no control_ack, so their boundary is not established."
        yield CapFinding("R05", "best_effort", "harness_events.jsonl", said)
    if level.observed == "sdk_full" and not observed.sdk.boundaries_complete:
        why = observed.sdk.problem or "the record is incomplete"
        yield CapFinding("R06", "checkpointed", "boundaries", f"Causal boundaries are not all recorded: {why}.")
    if observed.lost:
        yield CapFinding("R07", "none", "events.jsonl", "The attempt was lost before it ended.")
