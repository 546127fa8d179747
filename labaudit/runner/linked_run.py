"""One trial of a sealed run to a new run of that one trial: for a replay as it was, for a fork with changed bindings.

The child carries everything it needs in its own folder, and names its parent by manifest digest in `lineage.json`. The
parent is only read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labaudit.core import ids
from labaudit.core.clock import Clock, rfc3339
from labaudit.core.digest import CHUNK, Digest, hash_file
from labaudit.errors import BadInput, Contradiction
from labaudit.planning.schedule import PlannedTrial
from labaudit.records.resolved import ResolvedExperiment, ScheduleSummary, Variant
from labaudit.records.trial_record import TrialRecord
from labaudit.runner.context import live_folder
from labaudit.runner.run_start import read_resolved, unpack_source
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder, TrialFolder

LINEAGE, DIVERGENCE = "lineage.json", "divergence.json"


@dataclass(frozen=True)
class Parent:
    """The trial that is looked at again."""

    run: RunFolder
    trial: TrialFolder
    resolved: ResolvedExperiment
    record: TrialRecord
    manifest_digest: str


@dataclass(frozen=True)
class Link:
    """What makes a child what it is."""

    kind: str
    """replay or fork."""
    variant: Variant
    selector: str | None = None
    changed: Mapping[str, object] = field(default_factory=dict)
    details: Mapping[str, object] = field(default_factory=dict)


def read_parent(run: RunFolder, trial: TrialFolder) -> Parent:
    """The trial with its record; every file that a replay rests on must still be what the record lists."""
    if not run.sealed:
        hint = f"finish it first: labaudit resume {run.run_id}"
        raise BadInput(f"run {run.run_id} is not sealed", where=str(run.path), hint=hint)
    resolved, _ = read_resolved(run)
    record = TrialRecord.from_bytes(atomic.read_bytes(trial.trial_record), where=str(trial.trial_record))
    if record.status == "lost":
        raise BadInput("the trial was lost: there is nothing to look at again", where=trial.trial_id)
    for entry in record.files:
        path = trial.path / entry.path
        if not path.is_file() or hash_file(path)[0] != entry.sha256:
            raise Contradiction(
                f"{entry.path} is not what the trial's record lists{_boundary(trial, entry.path)}",
                where=str(path),
                hint=f"labaudit verify {run.path}",
            )
    return Parent(run, trial, resolved, record, "sha256:" + hash_file(run.manifest)[0])


def _boundary(trial: TrialFolder, name: str) -> str:
    """For a changed record of boundaries: at which one it breaks."""
    if name != trial.boundaries.name:
        return ""
    from labaudit.core.strict_json import parse_object
    from labaudit.evidence.boundaries import judge_boundaries

    own = parse_object(atomic.read_bytes(trial.trial_input), where="trial_input.json")["ids"]
    judged = judge_boundaries(trial.boundaries, trial.harness_events, own if isinstance(own, dict) else {})
    return f": boundary {judged.recorded}: {judged.problem}" if judged.problem else ""


def create_child(lab: LabFolder, parent: Parent, link: Link, clock: Clock) -> RunFolder:
    """The child's folder, ready for its one trial."""
    needed = _needed(parent)
    for reference in needed:
        _require_whole(parent, reference)
    resolved = child_resolved(parent, link)
    data = resolved.to_bytes()
    digest = Digest.of(data)
    now = clock.now()
    run = lab.new_run(ids.run_id(now, digest))
    for reference in needed:
        with parent.run.artifacts.open(reference) as stream:
            run.artifacts.put(stream, str(parent.run.artifacts.meta(reference)["content_type"]))
    atomic.write_bytes(run.variant(link.variant.id), link.variant.to_bytes())
    before = parent.record.ids
    trial_id = ids.trial_id(digest, link.variant.id, before.task_id, before.repl_idx)
    planned = PlannedTrial(0, trial_id, link.variant.id, before.task_id, before.repl_idx)
    atomic.write_lines(run.schedule, [planned.as_json()])
    run.trials.mkdir()
    _unpack_evaluators(parent, live_folder(lab, run.run_id))
    atomic.write_json(run.path / LINEAGE, _lineage(parent, link))
    atomic.write_bytes(run.resolved, data)
    atomic.write_bytes(run.resolved_digest, str(digest).encode())
    line = {"run_id": run.run_id, "resolved_digest": str(digest), "registered_at": rfc3339(now), "trials": 1}
    atomic.append_line(lab.registry, line)
    return run


def child_resolved(parent: Parent, link: Link) -> ResolvedExperiment:
    """The parent's plan, narrowed to the one variant that runs again."""
    name = f"{link.kind} of {parent.record.ids.trial_id}"
    return parent.resolved.model_copy(
        update={
            "experiment": parent.resolved.experiment.model_copy(update={"name": name}),
            "baseline": link.variant,
            "variants": (link.variant,),
            "variant_plan": (),
            "schedule": ScheduleSummary(trials=1, seed=parent.resolved.design.seed),
        }
    )


def _lineage(parent: Parent, link: Link) -> dict[str, Any]:
    before = parent.record.ids
    return {
        "schema_version": "lineage_v1",
        "kind": link.kind,
        "parent": {
            "run_id": before.run_id,
            "trial_id": before.trial_id,
            "manifest_digest": parent.manifest_digest,
            "trial_record_digest": "sha256:" + hash_file(parent.trial.trial_record)[0],
        },
        "selector": link.selector,
        "set": dict(link.changed),
        **dict(link.details),
    }


def _needed(parent: Parent) -> list[str]:
    harness = parent.resolved.runtime.harness
    if harness.source_digest is not None and harness.source_archive_ref is None:
        raise BadInput("the harness's source was too large to be kept with the run", where=parent.run.run_id)
    needed = [parent.resolved.dataset.artifact_ref]
    if harness.source_archive_ref is not None:
        needed.append(harness.source_archive_ref)
    return [*needed, *_evaluator_archives(parent).values()]


def _require_whole(parent: Parent, reference: str) -> None:
    """Reads an artifact to its end, where its stream compares the hash; before there is a child."""
    with parent.run.artifacts.open(reference) as stream:
        while stream.read(CHUNK):
            pass


def _evaluator_archives(parent: Parent) -> dict[str, str]:
    """Evaluator id to the archive of its source, as the run's list of artifacts names it."""
    from labaudit.core.strict_json import parse_object
    from labaudit.runner.run_start import EVALUATOR_ROLE
    from labaudit.store.event_log import read_lines

    found: dict[str, str] = {}
    if parent.run.artifact_list.is_file():
        for line in read_lines(parent.run.artifact_list):
            row = parse_object(line, where=str(parent.run.artifact_list))
            if str(row["role"]).startswith(EVALUATOR_ROLE):
                found[str(row["role"]).removeprefix(EVALUATOR_ROLE)] = str(row["ref"])
    return found


def _unpack_evaluators(parent: Parent, live: Path) -> None:
    for evaluator_id, reference in _evaluator_archives(parent).items():
        unpack_source(parent.run.artifacts.get(reference), live / "evaluators" / evaluator_id)


def record_lineage(lab: LabFolder, child: RunFolder, parent: Parent, link: Link, clock: Clock) -> None:
    """The line in the lab's `lineage.jsonl`, which is where a parent's children are found."""
    before = parent.record.ids
    line = {
        "kind": link.kind,
        "parent": {"run_id": before.run_id, "trial_id": before.trial_id, "manifest_digest": parent.manifest_digest},
        "child": {"run_id": child.run_id},
        "selector": link.selector,
        "set": dict(link.changed),
        "at": rfc3339(clock.now()),
    }
    atomic.append_line(lab.lineage, line)
