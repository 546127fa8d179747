"""A trial of a sealed run once more: replayed as it was, or forked with changed bindings; the answer is a run itself.

How faithful a replay can be follows from the observed level: recorded boundaries are answered from the record
(sdk_full), hook streams are compared step by step (sdk_control, cli_events, otel), outputs alone are compared
(cli_basic).
"""

from __future__ import annotations

import difflib
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labaudit.attest.seal import sign_resolve_link
from labaudit.attest.trust_store import LabKeys, ensure_keys
from labaudit.core.strict_json import parse_object
from labaudit.engines.select import select_engine
from labaudit.errors import BadInput, EnvironmentLacks, PolicyUnmet
from labaudit.pipeline.run import Progress, RunRequest, RunResult, finish_run
from labaudit.records.checkpoint import Checkpoint
from labaudit.records.resolved import Variant
from labaudit.runner.checkpoints.checkpoint import restore
from labaudit.runner.context import LinkedTrial, live_folder
from labaudit.runner.divergence import Comparison, compare_trials, output_files
from labaudit.runner.execution import execute, open_context, remove_live, run_lock
from labaudit.runner.executor import LocalExecutor
from labaudit.runner.linked_run import DIVERGENCE, Link, Parent, create_child, read_parent, record_lineage
from labaudit.runner.run_start import read_schedule
from labaudit.runner.selector import ForkPoint, find_point
from labaudit.runner.self_test import run_self_test
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder, TrialFolder

MODES = {"sdk_full": "boundaries", "sdk_control": "steps", "cli_events": "steps", "otel": "steps"}
MAX_RESTORED = 64 << 30


@dataclass(frozen=True)
class Relived:
    """The child run and where it parted from its parent; for a fork that is the prefix only."""

    result: RunResult
    parent: Parent
    mode: str
    comparison: Comparison

    @property
    def holds(self) -> bool:
        """Nothing diverged where nothing may."""
        return self.comparison.total == 0


def replay_trial(
    lab: LabFolder, run: RunFolder, trial: TrialFolder, request: RunRequest, progress: Progress, *, strict: bool
) -> Relived:
    """Re-executes a trial as its level allows and compares everything that was recorded."""
    parent = read_parent(run, trial)
    level = observed_level(trial)
    if strict and level != "sdk_full":
        raise PolicyUnmet(
            f"the trial was observed at {level}, which has no record of boundaries",
            where=trial.trial_id,
            hint="a strict replay rests on one; without --strict the trial is re-executed and compared",
        )
    variant = next(item for item in parent.resolved.variants if item.id == parent.record.ids.variant_id)
    link = Link("replay", variant, details={"mode": MODES.get(level, "outputs")})
    return _relive(lab, parent, link, None, request, progress)


def fork_trial(
    lab: LabFolder,
    run: RunFolder,
    trial: TrialFolder,
    selector: str,
    changed: Mapping[str, object],
    request: RunRequest,
    progress: Progress,
) -> Relived:
    """A new trial from a step of an old one on, with some bindings changed from there."""
    parent = read_parent(run, trial)
    point = find_point(trial, selector)
    before = next(item for item in parent.resolved.variants if item.id == parent.record.ids.variant_id)
    for name in changed:
        if name not in before.bindings:
            near = difflib.get_close_matches(name, before.bindings, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it binds {', '.join(before.bindings) or 'nothing'}"
            raise BadInput(f"variant {before.id} has no binding {name!r}", hint=hint)
    if all(before.bindings[name] == value for name, value in changed.items()):
        raise BadInput("the fork changes nothing", hint="give another value with --set NAME=VALUE")
    variant = Variant(id=_fork_id(before.id), bindings={**before.bindings, **changed})
    details = {
        "at_step": point.step,
        "checkpoint": point.checkpoint.label if point.checkpoint is not None else None,
        "mode": MODES.get(observed_level(trial), "outputs"),
    }
    link = Link("fork", variant, selector, changed, details)
    return _relive(lab, parent, link, point, request, progress)


def observed_level(trial: TrialFolder) -> str:
    """The level that the trial's grades record."""
    level = parse_object(atomic.read_bytes(trial.grades), where=str(trial.grades))["integration_level"]
    return str(level["observed"]) if isinstance(level, dict) else "not_observed"


def _fork_id(variant_id: str) -> str:
    return f"{variant_id[:50]}.fork"


def _relive(
    lab: LabFolder, parent: Parent, link: Link, point: ForkPoint | None, request: RunRequest, progress: Progress
) -> Relived:
    engine, _ = select_engine(parent.resolved.runtime.engine.resolved)
    with engine:
        _require_image(engine.resolve_image, parent)
        _require_checkpoint(_saved(link, point), parent)
        keys = _keys(lab, request, parent)
        child = create_child(lab, parent, link, request.clock)
        with run_lock(lab, child.run_id):
            if keys is not None:
                sign_resolve_link(child, keys.signing)
            live = live_folder(lab, child.run_id)
            linked = _linked(parent, link, point, live)
            image = parent.resolved.runtime.image.id or engine.resolve_image(None).id
            self_test = run_self_test(engine, image, parent.resolved, child, progress.stage)
            ctx = open_context(
                lab, child, engine, options=request.options, clock=request.clock, self_test=self_test, linked=linked
            )
            progress.stage(f"{link.kind} of {parent.record.ids.trial_id} as run {child.run_id}")
            execute(ctx, LocalExecutor(1), on_start=progress.trials, on_done=progress.trial)
            comparison = _compare(parent, child, point)
            document = {"schema_version": "divergence_v1", "mode": link.details["mode"], **comparison.as_json()}
            atomic.write_json(child.path / DIVERGENCE, document)
            result = finish_run(child, ctx.resolved, keys, request.clock, progress, engine=engine, live=live)
            record_lineage(lab, child, parent, link, request.clock)
            remove_live(lab, child.run_id)
    return Relived(result, parent, str(link.details["mode"]), comparison)


def _require_image(resolve: Any, parent: Parent) -> None:
    wanted = parent.resolved.runtime.image.id
    if wanted is None:
        return
    try:
        found = resolve(wanted).id
    except EnvironmentLacks:
        found = resolve(parent.resolved.runtime.image.requested).id
    if found != wanted:
        hint = f"load the image with id {wanted}"
        raise EnvironmentLacks(f"the image is here as {found} only", where="runtime.image", hint=hint)


def _saved(link: Link, point: ForkPoint | None) -> Checkpoint | None:
    """What to restore. Where the prefix is answered from the record, it starts from nothing, as the parent did."""
    return point.checkpoint if point is not None and link.details["mode"] != "boundaries" else None


def _require_checkpoint(saved: Checkpoint | None, parent: Parent) -> None:
    """Restores it once on the side, so that a damaged one is an error and not a lost trial of a new run."""
    if saved is None:
        return
    with tempfile.TemporaryDirectory() as name:
        targets: dict[str, Path] = {surface.name: Path(name, surface.name) for surface in saved.surfaces}
        for target in targets.values():
            target.mkdir()
        restore(parent.trial, parent.run.artifacts, saved.label, targets, max_bytes=MAX_RESTORED)


def _linked(parent: Parent, link: Link, point: ForkPoint | None, live: Path) -> LinkedTrial:
    """What the child's trial gets besides its input: recorded boundaries, or a checkpoint."""
    before = parent.record.ids
    boundaries = None
    if link.details["mode"] == "boundaries":
        boundaries = live / "replay"
        boundaries.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(parent.trial.boundaries, boundaries / parent.trial.boundaries.name)
    if point is None:
        return LinkedTrial(ext={}, boundaries=boundaries)
    variant = next(item for item in parent.resolved.variants if item.id == before.variant_id)
    fork: dict[str, object] = {
        "parent_run_id": before.run_id,
        "parent_trial_id": before.trial_id,
        "at_step": point.step,
        "prefix_bindings": variant.bindings,
    }
    saved = _saved(link, point)
    if saved is not None:
        fork["restored"] = {"label": saved.label, "step_index": saved.step_index}

    def fill(surfaces: Mapping[str, Path]) -> None:
        if saved is not None:
            restore(parent.trial, parent.run.artifacts, saved.label, surfaces, max_bytes=MAX_RESTORED)

    return LinkedTrial(ext={"fork": fork}, boundaries=boundaries, until_step=point.step, restore=fill)


def _compare(parent: Parent, child: RunFolder, point: ForkPoint | None) -> Comparison:
    again = child.trial(read_schedule(child)[0].trial_id)
    outputs = (output_files(parent.trial), output_files(again))
    return compare_trials(parent.trial, again, outputs, before_step=point.step if point is not None else None)


def _keys(lab: LabFolder, request: RunRequest, parent: Parent) -> LabKeys | None:
    if not request.sign or not parent.resolved.provenance.sign:
        return None
    return ensure_keys(lab, key_path=request.key)
