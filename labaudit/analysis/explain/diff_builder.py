"""Two trials of one task to an evidence-based diff: steps or turns, calls, proxy decisions, artifacts, each labelled.

A source that one side lacks is named as missing; it is never read as "no difference".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from labaudit.analysis.explain.alignment import align, align_spans
from labaudit.analysis.explain.stream import Stream
from labaudit.analysis.explain.trial_evidence import TrialEvidence
from labaudit.errors import BadInput

MAX_LISTED = 50


class DiffBuilder:
    """Builds the lines of `diffs/<variant>.jsonl`."""

    @staticmethod
    def build(task_id: str, trial_a: TrialEvidence, trial_b: TrialEvidence) -> dict[str, object]:
        """The diff of `trial_b` (the variant) against `trial_a` (the baseline); both are trials of `task_id`."""
        for trial in (trial_a, trial_b):
            if trial.task_id != task_id:
                raise BadInput(f"trial {trial.trial_id} belongs to task {trial.task_id!r}, not to {task_id!r}")
        aligned, source, streams = align(trial_a.hooks, trial_b.hooks), "hooks", (trial_a.hooks, trial_b.hooks)
        if aligned is None and trial_a.traces.usable and trial_b.traces.usable:
            source, streams = "traces", (trial_a.traces, trial_b.traces)
            aligned = align_spans(*streams)
        return {
            "task_id": task_id,
            "repl_idx": trial_b.repl_idx,
            "baseline": trial_a.variant_id,
            "variant": trial_b.variant_id,
            "baseline_trial": trial_a.trial_id,
            "variant_trial": trial_b.trial_id,
            "granularity": aligned.mode if aligned else "output",
            "outcome": {"baseline": trial_a.outcome, "variant": trial_b.outcome},
            "metrics": _metric_changes(trial_a.metrics, trial_b.metrics),
            "sequence": _labelled(source, *streams, aligned.as_json() if aligned else None),
            "model_calls": _call_changes(trial_a.hooks, trial_b.hooks, "model_call_end", "model", "identity"),
            "tool_calls": _call_changes(trial_a.hooks, trial_b.hooks, "tool_call_end", "tool", "name"),
            "spans": _span_changes(trial_a.traces, trial_b.traces),
            "network": _network_changes(trial_a.network, trial_b.network),
            "framework": _type_changes(trial_a, trial_b),
            "artifacts": _artifact_changes(trial_a, trial_b),
            "workspace": _surface_changes("workspace", trial_a, trial_b),
            "state": _surface_changes("state", trial_a, trial_b),
        }


def _labelled(source: str, baseline: Stream, variant: Stream, diff: object) -> dict[str, object]:
    return {
        "evidence_source": source,
        "baseline": availability(baseline),
        "variant": availability(variant),
        "diff": diff if baseline.usable and variant.usable else None,
    }


def availability(stream: Stream) -> str:
    """`present`, `absent`, or why it is not counted."""
    if stream.problem is not None:
        return f"unusable: {stream.problem}"
    return "present" if stream.present else "absent"


def _metric_changes(baseline: Mapping[str, object], variant: Mapping[str, object]) -> dict[str, object]:
    names = sorted(name for name in {*baseline, *variant} if baseline.get(name) != variant.get(name))
    return {name: {"baseline": baseline.get(name), "variant": variant.get(name)} for name in names[:MAX_LISTED]}


def _call_changes(baseline: Stream, variant: Stream, kind: str, named: str, key: str) -> dict[str, object]:
    counted = [_count_calls(stream, kind, named, key) for stream in (baseline, variant)]
    return _labelled("hooks", baseline, variant, _count_changes(*counted))


def _count_calls(stream: Stream, kind: str, named: str, key: str) -> Counter[str]:
    calls: Counter[str] = Counter()
    for event in stream.events:
        if event.get("event_type") == kind:
            thing = event.get(named)
            calls[str(thing.get(key)) if isinstance(thing, dict) and key in thing else "unnamed"] += 1
    return calls


def _span_changes(baseline: Stream, variant: Stream) -> dict[str, object]:
    counted = [Counter(str(span["name"]) for span in stream.events) for stream in (baseline, variant)]
    return _labelled("traces", baseline, variant, _count_changes(*counted))


def _network_changes(baseline: Stream, variant: Stream) -> dict[str, object]:
    counted = [_count_decisions(stream) for stream in (baseline, variant)]
    return _labelled("network_proxy", baseline, variant, _count_changes(*counted))


def _count_decisions(stream: Stream) -> Counter[str]:
    """Connections by decision and target: with proxy evidence alone nothing more can be said."""
    decisions: Counter[str] = Counter()
    for event in stream.events:
        times = event.get("count", 1)
        key = f"{event.get('decision')} {event.get('host')}:{event.get('port')}"
        decisions[key] += times if isinstance(times, int) else 1
    return decisions


def _type_changes(trial_a: TrialEvidence, trial_b: TrialEvidence) -> dict[str, object]:
    streams = trial_a.framework, trial_b.framework
    counted = [Counter(str(event.get("event_type")) for event in stream.events) for stream in streams]
    return _labelled(trial_b.recorded_by, *streams, _count_changes(*counted))


def _count_changes(baseline: Counter[str], variant: Counter[str]) -> dict[str, object]:
    names = sorted(name for name in {*baseline, *variant} if baseline[name] != variant[name])
    listed = {name: {"baseline": baseline[name], "variant": variant[name]} for name in names[:MAX_LISTED]}
    return {"changed": listed, "changed_total": len(names)}


def _artifact_changes(trial_a: TrialEvidence, trial_b: TrialEvidence) -> dict[str, object]:
    """Workspace, output and state artifacts by role: same digests, others, or on one side only."""
    roles = {*trial_a.artifacts, *trial_b.artifacts}
    changed = sorted(role for role in roles if trial_a.artifacts.get(role) != trial_b.artifacts.get(role))
    listed = {
        role: {
            "baseline": list(trial_a.artifacts.get(role, ())[:MAX_LISTED]),
            "variant": list(trial_b.artifacts.get(role, ())[:MAX_LISTED]),
        }
        for role in changed[:MAX_LISTED]
    }
    known = bool(trial_a.artifacts) and bool(trial_b.artifacts)
    diff = {"same": len(roles) - len(changed), "changed": listed, "changed_total": len(changed)}
    return {
        "evidence_source": trial_b.recorded_by,
        "baseline": "present" if trial_a.artifacts else "absent",
        "variant": "present" if trial_b.artifacts else "absent",
        "diff": diff if known else None,
    }


def _surface_changes(name: str, trial_a: TrialEvidence, trial_b: TrialEvidence) -> dict[str, object]:
    """Files of a writable folder as the last checkpoint of each trial has them."""
    baseline, variant = trial_a.surfaces.get(name), trial_b.surfaces.get(name)
    diff = None
    if baseline is not None and variant is not None:
        kinds = {
            "only_in_baseline": sorted(baseline.keys() - variant.keys()),
            "only_in_variant": sorted(variant.keys() - baseline.keys()),
            "changed": sorted(path for path in baseline.keys() & variant.keys() if baseline[path] != variant[path]),
        }
        diff = {kind: {"paths": paths[:MAX_LISTED], "total": len(paths)} for kind, paths in kinds.items()}
    return {
        "evidence_source": trial_b.recorded_by,
        "baseline": "absent" if baseline is None else "present",
        "variant": "absent" if variant is None else "present",
        "diff": diff,
    }
