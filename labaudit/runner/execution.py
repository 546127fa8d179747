"""A prepared run to a run whose every scheduled trial has its record.

One process at a time works on a run: it holds a lock that the system gives back whatever way the process ends.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from labaudit.core.clock import Clock, SystemClock
from labaudit.engines.protocol import Engine
from labaudit.errors import BadInput, EnvironmentLacks
from labaudit.planning.schedule import PlannedTrial
from labaudit.records.fields import EvidenceOrigin
from labaudit.records.metrics import Metrics
from labaudit.records.resolved import ResolvedExperiment
from labaudit.runner import run_start
from labaudit.runner.context import LinkedTrial, RunContext, RunOptions, live_folder
from labaudit.runner.executor import Executor, Measured, TrialDone, stop_on_interrupt
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder


@contextmanager
def run_lock(lab: LabFolder, run_id: str) -> Iterator[None]:
    """Only one process works on a run; BadInput when another one does."""
    folder = live_folder(lab, run_id)
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            hint = f"`labaudit status {lab.named(run_id)}` shows how far it is"
            raise BadInput(f"another process is running {run_id}", hint=hint) from error
        yield
    finally:
        os.close(descriptor)


def is_running(lab: LabFolder, run_id: str) -> bool:
    """Whether a process holds the run's lock."""
    path = live_folder(lab, run_id) / "lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def open_context(
    lab: LabFolder,
    run: RunFolder,
    engine: Engine,
    *,
    options: RunOptions,
    clock: Clock | None = None,
    secrets: Mapping[str, str] | None = None,
    self_test: Mapping[str, object] | None = None,
    linked: LinkedTrial | None = None,
    evidence_origin: EvidenceOrigin = "local",
) -> RunContext:
    """What every trial shares, read back from the run folder: the same for a fresh run and a resumed one."""
    resolved, digest = run_start.read_resolved(run)
    live = live_folder(lab, run.run_id)
    dataset = run_start.read_stored_dataset(run, resolved)
    return RunContext(
        lab=lab,
        run=run,
        run_id=run.run_id,
        resolved=resolved,
        resolved_digest=digest,
        dataset=dataset,
        engine=engine,
        image_id=find_image(engine, resolved),
        harness_source=run_start.harness_snapshot(live, run, resolved),
        evaluator_sources=run_start.evaluator_snapshots(live, resolved),
        dataset_folder=run_start.dataset_folder(live, dataset),
        secrets=run_start.read_secrets(resolved.runtime.harness.secrets) if secrets is None else secrets,
        clock=clock or SystemClock(),
        options=options,
        cache=run_start.cache_folder(live, resolved),
        engine_facts=engine.facts(),
        self_test=self_test,
        linked=linked,
        evidence_origin=evidence_origin,
        stop=threading.Event(),
    )


def find_image(engine: Engine, resolved: ResolvedExperiment) -> str:
    """The image that the plan fixed, by its id; where the engine has lost it, what was asked for must give it again."""
    image = resolved.runtime.image
    if image.id is None:
        return engine.resolve_image(None).id
    try:
        return engine.resolve_image(image.id).id
    except EnvironmentLacks:
        found = engine.resolve_image(image.requested)
        if found.id != image.id:
            hint = "load the image that the run started with, or start a new run"
            raise EnvironmentLacks(f"image {image.id} is not here any more", hint=hint) from None
        return found.id


def execute(
    ctx: RunContext,
    executor: Executor,
    *,
    on_start: Callable[[int, int], None],
    on_done: Callable[[TrialDone], None],
) -> None:
    """Runs what is not yet there. Ctrl-C and SIGTERM stop trials cleanly; Interrupted says how to go on."""
    planned = run_start.read_schedule(ctx.run)
    todo = unfinished(ctx.run, planned)
    on_start(len(planned), len(planned) - len(todo))
    with _signals(ctx.stop):
        executor.run(ctx, todo, lambda done: on_done(replace(done, primary=_primary(ctx, done.planned))))


def _primary(ctx: RunContext, planned: PlannedTrial) -> Measured | None:
    """What the plan's first primary metric came to in one trial."""
    if not ctx.resolved.analysis_plan.primary:
        return None
    name = ctx.resolved.analysis_plan.primary[0]
    source = next(metric.source for metric in ctx.resolved.metrics if metric.name == name)
    path = ctx.run.trial(planned.trial_id).metrics
    if not path.is_file():
        return Measured(name, source, None)
    return Measured(name, source, Metrics.from_bytes(atomic.read_bytes(path), where=str(path)).metrics.get(name))


def unfinished(run: RunFolder, planned: Sequence[PlannedTrial]) -> list[PlannedTrial]:
    """The planned trials that have no record yet; one listing of a folder decides."""
    with os.scandir(run.trials) as entries:
        there = {entry.name for entry in entries}
    return [item for item in planned if item.trial_id not in there]


@contextmanager
def _signals(stop: threading.Event) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = stop_on_interrupt(stop)
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def remove_live(lab: LabFolder, run_id: str) -> None:
    """Clears the working copies of a sealed run."""
    shutil.rmtree(live_folder(lab, run_id), ignore_errors=True)
    parent: Path = lab.path / "live"
    if parent.is_dir() and not any(parent.iterdir()):
        parent.rmdir()
    atomic.sync_folder(lab.path)
