"""A trial's evidence files to one value: hook events, spans, proxy decisions, files kept, configuration facts.

Each source is present, absent or unusable, and stays labelled. From an unusable hook stream nothing is counted: half a
stream would make a trial look shorter than it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from labaudit.analysis.explain.kept_state import Files, read_spans, read_surfaces
from labaudit.analysis.explain.stream import Event, Stream, read_stream
from labaudit.analysis.trials.rows import TrialRow
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput, LabauditError
from labaudit.store.artifact_store import ArtifactStore
from labaudit.store.run_folder import TrialFolder

# What features, alignment and diffs look at; the rest of a stream is counted by nobody and not kept in memory.
_HOOK_TYPES = frozenset({"agent_step_start", "model_call_end", "tool_call_end", "error"})
_HOOK_KEYS = ("event_type", "step_index", "model", "tool", "outcome", "usage", "error_type", "action_observed")
_PROXY_KEYS = ("decision", "host", "port", "count")
_FRAMEWORK_KEYS = ("event_type", "payload_ref")


@dataclass(frozen=True)
class TrialEvidence:
    """What a trial left behind, apart from its metrics."""

    trial_id: str
    task_id: str
    repl_idx: int
    variant_id: str
    outcome: str | None
    recorded_by: str
    metrics: Mapping[str, object]
    hooks: Stream
    network: Stream
    framework: Stream
    traces: Stream = field(default_factory=Stream)
    surfaces: Mapping[str, Files] = field(default_factory=dict)
    artifacts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    configuration: Mapping[str, str] = field(default_factory=dict)
    features: Mapping[str, float] = field(default_factory=dict)


def read_evidence(folder: TrialFolder, row: TrialRow, store: ArtifactStore | None = None) -> TrialEvidence:
    """The evidence of one trial; missing files make empty streams, never errors. Payloads are read from `store`."""
    hooks = _hook_stream(folder)
    configuration = _configuration(folder, row)
    network = _proxy_stream(folder, configuration)
    framework = read_stream(folder.events, _FRAMEWORK_KEYS)
    traces = read_spans(folder, store)
    return TrialEvidence(
        trial_id=row.trial_id,
        task_id=row.task_id,
        repl_idx=row.repl_idx,
        variant_id=row.variant_id,
        outcome=row.outcome,
        recorded_by="imported" if row.evidence_origin == "imported" else "framework_events",
        metrics=row.metrics,
        hooks=hooks,
        network=network,
        framework=framework,
        traces=traces,
        surfaces=read_surfaces(folder, store),
        artifacts=_artifacts(folder),
        configuration=configuration,
        features=measure(row, hooks, network, traces, _budget_spent(framework, store)),
    )


def measure(
    row: TrialRow, hooks: Stream, network: Stream, traces: Stream, budget_spent: bool | None
) -> dict[str, float]:
    """Numbers about behaviour that each source can show; a source that is not usable adds none."""
    found: dict[str, float] = {}
    duration = seconds_between(row.started_at, row.ended_at)
    if duration is not None:
        found["duration_seconds"] = duration
    if hooks.usable:
        found.update(_hook_features(hooks))
    if network.usable:
        found["proxy_blocked"] = _decisions(network, "block")
        found["proxy_allowed"] = _decisions(network, "allow")
    if traces.usable:
        found["spans"] = float(len(traces.events))
        found["failed_spans"] = float(sum(1 for span in traces.events if span["failed"]))
    if budget_spent is not None:
        found["budget_spent"] = float(budget_spent)
    return found


def _budget_spent(framework: Stream, store: ArtifactStore | None) -> bool | None:
    """Whether the runner stopped the trial for a spent budget, as its exit event says; None when none says."""
    if not framework.usable or store is None:
        return None
    for event in reversed(framework.events):
        reference = event.get("payload_ref")
        if event.get("event_type") == "harness.exited" and isinstance(reference, str):
            try:
                payload = parse_object(store.get(reference))
            except LabauditError:
                return None
            return payload["budget_spent"] is not None if "budget_spent" in payload else None
    return None


def _hook_features(hooks: Stream) -> dict[str, float]:
    kinds = [str(event.get("event_type")) for event in hooks.events]
    calls = [e for e in hooks.events if e.get("event_type") in ("model_call_end", "tool_call_end")]
    usage = [u for u in (e.get("usage") for e in calls) if isinstance(u, dict)]
    return {
        "steps": float(kinds.count("agent_step_start")),
        "turns": float(kinds.count("model_call_end")),
        "tool_calls": float(kinds.count("tool_call_end")),
        "errors": float(kinds.count("error")),
        "failed_calls": float(sum(1 for call in calls if _status(call) == "error")),
        "tokens_in": float(sum(_count(u.get("tokens_in")) for u in usage)),
        "tokens_out": float(sum(_count(u.get("tokens_out")) for u in usage)),
        "stopped": float(any(e.get("action_observed") == "stop" for e in hooks.events)),
    }


def seconds_between(start: str | None, end: str | None) -> float | None:
    """Seconds from one RFC 3339 time to another, None when either is not there."""
    if start is None or end is None:
        return None
    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        return None


def _proxy_stream(folder: TrialFolder, configuration: Mapping[str, str]) -> Stream:
    """The proxy's decisions; an empty file where no proxy stood is no evidence that nothing was blocked."""
    stream = read_stream(folder.network_events, _PROXY_KEYS)
    without_proxy = configuration.get("network.mode_effective") in ("none", "full")
    return Stream() if without_proxy and stream.usable and not stream.events else stream


def _hook_stream(folder: TrialFolder) -> Stream:
    last = -1

    def compared(event: Event) -> bool:
        nonlocal last
        seq = event.get("seq")
        if not isinstance(seq, int) or seq <= last:
            raise BadInput("seq does not rise from line to line")
        last = seq
        return event.get("event_type") in _HOOK_TYPES or event.get("action_observed") == "stop"

    stream = read_stream(folder.harness_events, _HOOK_KEYS, keep=compared)
    if not stream.usable:
        return stream
    refused = _refused_by_grade(folder)
    return Stream(present=True, problem=refused) if refused else stream


def _refused_by_grade(folder: TrialFolder) -> str | None:
    """The grade of the trial, where there is one, has checked all rules of the stream."""
    if not folder.grades.is_file():
        return None
    try:
        sources = parse_object(folder.grades.read_bytes()).get("evidence_sources")
    except (BadInput, OSError):
        return None
    hooks = sources.get("hooks") if isinstance(sources, dict) else None
    if isinstance(hooks, dict) and (hooks.get("present") is False or hooks.get("covered") == 0):
        return "the trial's grade counts no hook event"
    return None


def _artifacts(folder: TrialFolder) -> dict[str, tuple[str, ...]]:
    """role -> references; payloads of events are left out, because they name the trial and so always differ."""
    found: dict[str, list[str]] = {}
    for line in read_stream(folder.artifacts, ("role", "ref")).events:
        role = str(line.get("role"))
        if "ref" in line and not role.startswith("event"):
            found.setdefault(role, []).append(str(line["ref"]))
    return {role: tuple(sorted(references)) for role, references in found.items()}


def _configuration(folder: TrialFolder, row: TrialRow) -> dict[str, str]:
    """Facts that should not differ between arms, flattened to text."""
    facts: dict[str, str] = {}
    if row.image_digest is not None:
        facts["image_digest"] = row.image_digest
    if not folder.state_inventory.is_file():
        return facts
    try:
        inventory = parse_object(folder.state_inventory.read_bytes())
    except (BadInput, OSError):
        return facts
    for key in ("sanitization_profile", "integration_level", "mounts"):
        if key in inventory:
            facts[key] = _flat(inventory[key])
    for block, keys in _COMPARED_FACTS.items():
        values = inventory.get(block)
        if isinstance(values, dict):
            facts.update({f"{block}.{key}": _flat(values[key]) for key in keys if key in values})
    return facts


_COMPARED_FACTS: dict[str, tuple[str, ...]] = {
    "network": ("mode_effective", "enforcement_effective", "allowed_hosts", "bypass_risk"),
    "harness_identity": ("source_digest", "exec_digest", "entry_command", "lockfile_digest", "runtime_fingerprint"),
}


def _flat(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, separators=(",", ":"))


def _decisions(network: Stream, decision: str) -> float:
    return float(sum(_count(e.get("count", 1)) for e in network.events if e.get("decision") == decision))


def _status(call: Event) -> str | None:
    outcome = call.get("outcome")
    return str(outcome.get("status")) if isinstance(outcome, dict) else None


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
