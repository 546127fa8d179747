"""A schema's name to the record that is the code's view of it, loaded when asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

# schema name -> module and the callable that turns a parsed JSON value into a record.
_LOADERS: dict[str, tuple[str, str]] = {
    "a2a_event_v1": ("a2a_event", "A2AEvent.from_json"),
    "analysis_summary_v1": ("analysis_summary", "AnalysisSummary.from_json"),
    "atomic_task_v1": ("task", "AtomicTask.from_json"),
    "attestation_v1": ("attestation", "Attestation.from_json"),
    "checkpoint_v1": ("checkpoint", "Checkpoint.from_json"),
    "comparisons_v1": ("comparisons", "Comparisons.from_json"),
    "control_plane_v1": ("control_plane", "ControlFile.from_json"),
    "event_envelope_v1": ("event_envelope", "EventEnvelope.from_json"),
    "events_head_v1": ("events_head", "EventsHead.from_json"),
    "exemplars_v1": ("exemplars", "Exemplars.from_json"),
    "grades_v1": ("grades", "Grades.from_json"),
    "harness_manifest_v1": ("harness_manifest", "HarnessManifest.from_json"),
    "hook_events_v1": ("hook_events", "hook_event_from_json"),
    "inclusion_v1": ("inclusion", "Inclusion.from_json"),
    "manifest_v1": ("manifest", "Manifest.from_json"),
    "metrics_v1": ("metrics", "Metrics.from_json"),
    "network_event_v1": ("network_event", "NetworkEvent.from_json"),
    "paired_diff_v1": ("paired_diff", "PairedDiff.from_json"),
    "receipt_v1": ("receipt", "Receipt.from_json"),
    "resolved_experiment_v0_3": ("resolved", "ResolvedExperiment.from_json"),
    "run_record_v1": ("run_record", "RunRecord.from_json"),
    "scenario_task_v1": ("task", "ScenarioTask.from_json"),
    "score_record_v1": ("score_record", "ScoreRecord.from_json"),
    "session_v1": ("session", "Session.from_json"),
    "state_inventory_v1": ("state_inventory", "StateInventory.from_json"),
    "suspects_v1": ("suspects", "Suspects.from_json"),
    "trace_manifest_v1": ("trace_manifest", "TraceManifest.from_json"),
    "trial_input_v1": ("trial_input", "TrialInput.from_json"),
    "trial_output_v1": ("trial_output", "TrialOutput.from_json"),
    "trial_record_v1": ("trial_record", "TrialRecord.from_json"),
}


def record_schemas() -> list[str]:
    """The schemas that have a record."""
    return sorted(_LOADERS)


def record_loader(schema_name: str) -> Callable[..., Any]:
    """`load(value, where=...)` for one schema: a record, or BadInput."""
    module, attribute = _LOADERS[schema_name]
    target: Any = importlib.import_module(f"labaudit.records.{module}")
    for part in attribute.split("."):
        target = getattr(target, part)
    loader: Callable[..., Any] = target
    return loader
