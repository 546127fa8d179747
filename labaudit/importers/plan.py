"""Foreign results to a resolved experiment, its dataset and its schedule: the same documents that a run of ours has.

Where the other tool's files do not say something, the value that claims least is taken and `defaults` says why. The
schedule holds the trials that there are, so uneven replicates stay uneven.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from labaudit.core.canonical import canonical_bytes
from labaudit.core.digest import Digest
from labaudit.core.ids import trial_id
from labaudit.errors import BadInput
from labaudit.importers.foreign_json import plain
from labaudit.importers.results import ForeignResults, ForeignTrial
from labaudit.planning.schedule import PlannedTrial
from labaudit.records.resolved import ResolvedExperiment

NOT_TOLD = "the imported files do not tell it; this value claims least"
_UNKNOWN: dict[str, Any] = {
    "design.sanitization_profile": "hermetic_functional_v2",
    "design.seed": 0,
    "design.shuffle_tasks": False,
    "design.randomize_variant_order": False,
    "design.block_by_task": False,
    "design.retries.infra": 0,
    "runtime.harness.integration_level": "cli_basic",
    "runtime.network.mode": "full",
    "runtime.timeouts.trial_seconds": 1,
    "runtime.resources": "placeholders of one unit each",
}


@dataclass(frozen=True)
class ImportPlan:
    """What is fixed before the first trial is written."""

    resolved: ResolvedExperiment
    digest: Digest
    dataset: bytes
    variant_ids: dict[str, str]
    schedule: list[tuple[PlannedTrial, ForeignTrial]]


def plan_import(results: ForeignResults, *, baseline: str | None = None, resamples: int = 10_000) -> ImportPlan:
    """The plan; BadInput when the baseline that was asked for is not among the variants."""
    labels = list(dict.fromkeys(trial.variant for trial in results.trials))
    names = variant_ids(labels)
    first = _baseline(labels, names, baseline)
    labels.sort(key=lambda label: label != first)
    tasks = sorted({trial.task_id for trial in results.trials})
    dataset = b"".join(canonical_bytes({**plain(results.tasks.get(task, {})), "id": task}) + b"\n" for task in tasks)
    cells = _replicates(results.trials)
    document = _document(results, labels, names, tasks, dataset, cells, resamples)
    resolved = ResolvedExperiment.from_json(document)
    digest = Digest.of(resolved.to_bytes())
    return ImportPlan(resolved, digest, dataset, names, _schedule(cells, names, labels, digest))


def variant_ids(labels: Sequence[str]) -> dict[str, str]:
    """Labels to ids that a variant may have, two labels never to one."""
    taken: dict[str, str] = {}
    for label in labels:
        plain_name = re.sub(r"[^A-Za-z0-9._-]+", "-", label).strip("-.")[:50] or "variant"
        name, number = plain_name, 2
        while name in taken.values():
            name, number = f"{plain_name}-{number}", number + 1
        taken[label] = name
    return taken


def _baseline(labels: Sequence[str], names: dict[str, str], asked: str | None) -> str:
    if asked is None:
        return labels[0]
    for label in labels:
        if asked in (label, names[label]):
            return label
    hint = "there are: " + ", ".join(names[label] for label in labels[:20])
    raise BadInput(f"no variant is called {asked!r}", where="--baseline", hint=hint)


Cell = tuple[str, str, int]


def _replicates(trials: Sequence[ForeignTrial]) -> dict[Cell, ForeignTrial]:
    groups: dict[tuple[str, str], list[ForeignTrial]] = {}
    for trial in trials:
        groups.setdefault((trial.variant, trial.task_id), []).append(trial)
    return {
        (variant, task, number): trial
        for (variant, task), group in groups.items()
        for number, trial in enumerate(sorted(group, key=lambda item: [str(part).zfill(12) for part in item.order]))
    }


def _schedule(
    cells: dict[Cell, ForeignTrial], names: dict[str, str], labels: Sequence[str], digest: Digest
) -> list[tuple[PlannedTrial, ForeignTrial]]:
    place = {label: position for position, label in enumerate(labels)}
    ordered = sorted(cells, key=lambda cell: (cell[1], cell[2], place[cell[0]]))
    schedule = []
    for index, (label, task, number) in enumerate(ordered):
        variant = names[label]
        planned = PlannedTrial(index, trial_id(str(digest), variant, task, number), variant, task, number)
        schedule.append((planned, cells[label, task, number]))
    return schedule


def _document(
    results: ForeignResults,
    labels: Sequence[str],
    names: dict[str, str],
    tasks: Sequence[str],
    dataset: bytes,
    cells: dict[Cell, ForeignTrial],
    resamples: int,
) -> dict[str, Any]:
    variants = [_variant(results, label, names[label]) for label in labels]
    sha256 = Digest.of(dataset).hex
    declared = [metric.name for metric in results.metrics]
    version = f" {results.tool.version}" if results.tool.version else ""
    tool = "a tool that its files do not name" if results.tool.name == "unknown" else results.tool.name
    return {
        "schema_version": "resolved_experiment_v0_3",
        "version": "0.3",
        "experiment": {
            "id": re.sub(r"[^A-Za-z0-9._-]+", "-", f"imported-{results.format}"),
            "name": f"{results.title or results.format}, imported",
            "description": f"Results that {tool}{version} made, imported from its files.",
            "tags": ["imported", results.format],
        },
        "dataset": {
            "path": "tasks.jsonl", "format": "jsonl", "sha256": sha256, "size": len(dataset), "id_field": "id",
            "limit": None, "count": len(tasks), "artifact_ref": f"artifact://sha256/{sha256}",
        },
        "design": {
            "sanitization_profile": _UNKNOWN["design.sanitization_profile"],
            "replications": max(number for _, _, number in cells) + 1, "seed": 0, "shuffle_tasks": False,
            "randomize_variant_order": False, "block_by_task": False,
            "fail_on_profile_invariant_violation": False, "retries": {"infra": 0},
        },
        "baseline": variants[0],
        "variants": variants,
        "variant_plan": [variant["id"] for variant in variants[1:]],
        "runtime": _runtime(results),
        "evaluators": [],
        "metrics": [
            {"name": metric.name, "type": metric.type, "direction": metric.direction, "source": "imported"}
            for metric in results.metrics
        ],
        "analysis_plan": {
            "primary": declared[:1], "secondary": declared[1:], "missingness": "paired_drop",
            "ci": {"method": "auto", "level": 0.95, "resamples": resamples},
            "correction": {"primary": "holm", "secondary": "bh"}, "estimand": "tasks_like_these", "cluster": None,
        },
        "redaction": {"rules": []},
        "provenance": {"sbom": "off", "sign": True},
        "executor": {"trusted_workers": []},
        "schedule": {"trials": len(cells), "seed": 0},
        "defaults": [{"path": path, "value": value, "reason": NOT_TOLD} for path, value in _UNKNOWN.items()],
    }  # fmt: skip


def _variant(results: ForeignResults, label: str, name: str) -> dict[str, Any]:
    info = results.variants.get(label)
    return {"id": name, "bindings": {"label": label, **(plain(dict(info.bindings)) if info else {})}}


def _runtime(results: ForeignResults) -> dict[str, Any]:
    return {
        "engine": {"requested": "imported", "resolved": "imported", "reason": f"{results.tool.name} ran the trials"},
        "image": {"requested": None, "id": None, "origin": "imported"},
        "harness": {
            "mode": "imported", "command": [], "exec_digest": None, "integration_level": "cli_basic",
            "control_plane": {"mode": "sdk"}, "tracing": {"mode": "none"}, "env": {}, "secrets": [],
            "input_path": "not told", "output_path": "not told",
        },
        "network": {"mode": "full", "enforcement": "unknown", "allowed_hosts": [], "allowed_networks": []},
        "budgets": {},
        "timeouts": {"trial_seconds": 1},
        "resources": {"memory_mb": 1, "cpus": 1, "pids": 1, "out_mb": 1, "workspace_mb": 1},
        "checkpoints": {"every_steps": None, "at_end": False},
        "cache": None,
    }  # fmt: skip
