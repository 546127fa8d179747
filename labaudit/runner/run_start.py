"""A resolution to a run folder that is ready for its first trial, and a run folder back to the same readiness.

Everything that trials need is inside the run folder (dataset, source archive) or copied beside it under `live/`, so a
later edit of the author's files changes nothing, and `resume` needs no more than the lab.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from labaudit.core import ids
from labaudit.core.clock import Clock, rfc3339
from labaudit.core.digest import Digest
from labaudit.core.redaction import Redactor
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput, EnvironmentLacks
from labaudit.harnesses.identity import archive_source, directory_digest, snapshot_source
from labaudit.planning.dataset import Dataset, read_dataset
from labaudit.planning.resolver import Resolution
from labaudit.planning.schedule import PlannedTrial, TrialPlanner
from labaudit.records.resolved import ResolvedExperiment
from labaudit.runner.checkpoints.archive import extract
from labaudit.runner.context import live_folder
from labaudit.store import atomic
from labaudit.store.event_log import read_lines
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder

_CONTENT_TYPES = {"jsonl": "application/jsonl", "json": "application/json", "csv": "text/csv"}
PLACES = "places.json"
EVALUATOR_ROLE = "evaluator source:"


def create_run(lab: LabFolder, resolution: Resolution, clock: Clock) -> RunFolder:
    """Writes what is fixed before the first trial; the registry line comes last and says when the plan stood.

    A start that fails leaves no run: what stands half-written could neither be resumed nor verified.
    """
    now = clock.now()
    run = lab.new_run(ids.run_id(now, resolution.digest))
    try:
        return _write_plan(lab, run, resolution, now)
    except BaseException:
        shutil.rmtree(run.path, ignore_errors=True)
        shutil.rmtree(live_folder(lab, run.run_id), ignore_errors=True)
        raise


def _write_plan(lab: LabFolder, run: RunFolder, resolution: Resolution, now: datetime) -> RunFolder:
    run.artifacts.put(resolution.dataset.data, _CONTENT_TYPES[resolution.dataset.format])
    if resolution.harness_archive is not None:
        run.artifacts.put(resolution.harness_archive, "application/x-tar")
    for variant in resolution.resolved.variants:
        atomic.write_bytes(run.variant(variant.id), variant.to_bytes())
    planned = TrialPlanner.plan(resolution.resolved, resolution.digest, resolution.dataset.ids)
    atomic.write_lines(run.schedule, [item.as_json() for item in planned])
    run.trials.mkdir()
    _snapshot(live_folder(lab, run.run_id), resolution, run)
    atomic.write_bytes(run.resolved, resolution.data)
    atomic.write_bytes(run.resolved_digest, str(resolution.digest).encode())
    line = {
        "run_id": run.run_id,
        "resolved_digest": str(resolution.digest),
        "registered_at": rfc3339(now),
        "trials": len(planned),
    }
    atomic.append_line(lab.registry, line)
    return run


def read_resolved(run: RunFolder) -> tuple[ResolvedExperiment, str]:
    """The plan of a run and its digest, which must be the recorded one."""
    if not run.resolved.is_file() or not run.resolved_digest.is_file():
        hint = "its start was interrupted; start it again with `labaudit run`"
        raise BadInput("the run has no resolved experiment", where=str(run.path), hint=hint)
    data = atomic.read_bytes(run.resolved)
    digest = Digest.of(data)
    if atomic.read_bytes(run.resolved_digest).decode("ascii", "replace") != str(digest):
        raise BadInput("resolved_experiment.json is not the one that the run started with", where=str(run.path))
    return ResolvedExperiment.from_bytes(data, where=str(run.resolved)), str(digest)


def read_schedule(run: RunFolder) -> list[PlannedTrial]:
    """The planned trials in order."""
    return [PlannedTrial.from_json(parse_object(line, where=str(run.schedule))) for line in read_lines(run.schedule)]


def read_stored_dataset(run: RunFolder, resolved: ResolvedExperiment) -> Dataset:
    """The dataset from the run's own store."""
    config = resolved.dataset
    data = run.artifacts.get(config.artifact_ref)
    where = f"dataset of {run.run_id}"
    name = Path(config.path).name
    return read_dataset(data, config.format, name=name, where=where, id_field=config.id_field, limit=config.limit)


def dataset_folder(live: Path, dataset: Dataset) -> Path:
    """A folder with the dataset file alone, for /dataset; made once."""
    folder = live / "dataset"
    if not (folder / dataset.name).is_file():
        atomic.write_bytes(folder / dataset.name, dataset.data)
    return folder


def harness_snapshot(live: Path, run: RunFolder, resolved: ResolvedExperiment) -> Path | None:
    """The copy of the harness that trials mount; taken again from the archive when it is gone, and always checked."""
    harness = resolved.runtime.harness
    if harness.source_digest is None:
        return None
    folder = live / "harness"
    if not folder.is_dir():
        if harness.source_archive_ref is None:
            hint = "the source was too large to keep with the run; start a new run"
            raise BadInput("the copy of the harness is gone", where=str(folder), hint=hint)
        unpack_source(run.artifacts.get(harness.source_archive_ref), folder)
    if str(directory_digest(folder)) != harness.source_digest:
        hint = f"remove {folder} to take it from the run's own archive again"
        raise BadInput("the copy of the harness is not what the run started with", where=str(folder), hint=hint)
    return folder


def evaluator_snapshots(live: Path, resolved: ResolvedExperiment) -> dict[str, Path]:
    """The copies of evaluators' sources, checked."""
    found: dict[str, Path] = {}
    for config in resolved.evaluators:
        if config.source_digest is None:
            continue
        folder = live / "evaluators" / config.id
        if not folder.is_dir() or str(directory_digest(folder)) != config.source_digest:
            hint = "start a new run"
            raise BadInput(f"the copy of evaluator {config.id} is gone or changed", where=str(folder), hint=hint)
        found[config.id] = folder
    return found


def cache_folder(live: Path, resolved: ResolvedExperiment) -> Path | None:
    """The cache, which is used where it is and must still be what it was."""
    if resolved.runtime.cache is None:
        return None
    places = parse_object(atomic.read_bytes(live / PLACES), where=PLACES)
    folder = Path(str(places["cache"]))
    if not folder.is_dir() or str(directory_digest(folder)) != resolved.runtime.cache.digest:
        raise BadInput("the cache folder has changed since the run started", where=str(folder))
    return folder


def read_secrets(names: tuple[str, ...], environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The declared secrets from the environment; each must be there."""
    given = os.environ if environment is None else environment
    missing = [name for name in names if not given.get(name)]
    if missing:
        hint = "runtime.harness.secrets names variables of the environment that labaudit runs in"
        raise EnvironmentLacks(f"the secret {missing[0]} is not set", where="runtime.harness.secrets", hint=hint)
    found = {name: given[name] for name in names}
    # One that is too short to be withheld is better told before there is a run, too.
    Redactor(secrets=found)
    return found


def other_roles(live: Path, resolved: ResolvedExperiment) -> dict[str, str]:
    """What the run's own artifacts are, by reference."""
    roles = {resolved.dataset.artifact_ref: "dataset"}
    if resolved.runtime.harness.source_archive_ref is not None:
        roles[resolved.runtime.harness.source_archive_ref] = "harness source"
    if (live / PLACES).is_file():
        evaluators = parse_object(atomic.read_bytes(live / PLACES), where=PLACES).get("evaluators")
        for evaluator_id, reference in (evaluators if isinstance(evaluators, dict) else {}).items():
            roles[str(reference)] = EVALUATOR_ROLE + str(evaluator_id)
    return roles


def _snapshot(live: Path, resolution: Resolution, run: RunFolder) -> None:
    live.mkdir(parents=True, exist_ok=True)
    if resolution.harness_source is not None:
        taken = snapshot_source(resolution.harness_source, live / "harness")
        if str(taken) != resolution.resolved.runtime.harness.source_digest:
            raise BadInput("the harness changed while it was being copied", where=str(resolution.harness_source))
    evaluators: dict[str, str] = {}
    for evaluator_id, source in resolution.evaluator_sources.items():
        snapshot_source(source, live / "evaluators" / evaluator_id)
        archive = archive_source(source)
        if archive is not None:
            evaluators[evaluator_id] = run.artifacts.put(archive, "application/x-tar")
    cache = None if resolution.cache is None else str(resolution.cache.resolve())
    atomic.write_json(live / PLACES, {"cache": cache, "evaluators": evaluators})


def unpack_source(archive: bytes, folder: Path) -> None:
    """The archive is our own, but others may have touched the folder it lies in, so nothing in it is trusted."""
    temporary = folder.with_name(f"{atomic.TEMPORARY_PREFIX}harness")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    # Every member is smaller than the archive itself. tarfile's own filter is missing before Python 3.11.4.
    extract(io.BytesIO(archive), temporary, max_bytes=len(archive), where="harness source", make_parents=True)
    temporary.rename(folder)
