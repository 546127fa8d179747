"""A run to the one value that a worker needs of it, and that value to a working copy on the worker."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from labaudit.core.clock import SystemClock
from labaudit.core.digest import Digest
from labaudit.engines.protocol import Engine
from labaudit.engines.select import select_engine
from labaudit.errors import BadInput
from labaudit.harnesses.identity import archive_source
from labaudit.records.resolved import ResolvedExperiment
from labaudit.runner.context import RunContext, RunOptions, live_folder
from labaudit.runner.execution import open_context
from labaudit.runner.run_start import unpack_source
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder


@dataclass(frozen=True)
class RunParts:
    """Everything about a run that is the same for all of its trials; plain values, so that it can be sent."""

    run_id: str
    resolved: bytes
    dataset: bytes
    harness_archive: bytes | None
    evaluator_archives: tuple[tuple[str, bytes], ...]
    options: RunOptions
    self_test: dict[str, object] | None


def parts_of(ctx: RunContext) -> RunParts:
    """The parts of a run that is about to be executed."""
    harness = ctx.resolved.runtime.harness
    if ctx.cache is not None:
        raise BadInput("a cache folder is on this machine only", where="runtime.cache", hint="use --executor local")
    archive = None
    if harness.source_digest is not None:
        if harness.source_archive_ref is None:
            raise BadInput("the harness's source is too large to be sent to workers", where="runtime.harness.source")
        archive = ctx.run.artifacts.get(harness.source_archive_ref)
    evaluators = tuple(
        (name, data) for name, folder in ctx.evaluator_sources.items() if (data := archive_source(folder)) is not None
    )
    self_test = dict(ctx.self_test) if ctx.self_test is not None else None
    return RunParts(
        ctx.run_id, ctx.resolved.to_bytes(), ctx.dataset.data, archive, evaluators, ctx.options, self_test
    )


_lock = threading.Lock()
_contexts: dict[tuple[str, str], RunContext] = {}
_engines: dict[str, Engine] = {}


def context_on_worker(parts: RunParts, base: Path) -> RunContext:
    """The run's context in a folder of the worker's own; made once per process and run."""
    key = (parts.run_id, str(base))
    with _lock:
        if key not in _contexts:
            _contexts[key] = _prepare(parts, base)
        return _contexts[key]


def _prepare(parts: RunParts, base: Path) -> RunContext:
    resolved = ResolvedExperiment.from_bytes(parts.resolved, where="resolved experiment")
    lab = LabFolder(base)
    run = RunFolder(lab.runs_folder / parts.run_id)
    live = live_folder(lab, parts.run_id)
    run.trials.mkdir(parents=True, exist_ok=True)
    run.artifacts.put(parts.dataset)
    if parts.harness_archive is not None:
        run.artifacts.put(parts.harness_archive)
    for name, data in parts.evaluator_archives:
        folder = live / "evaluators" / name
        if not folder.is_dir():
            unpack_source(data, folder)
    atomic.write_bytes(run.resolved, parts.resolved)
    atomic.write_bytes(run.resolved_digest, str(Digest.of(parts.resolved)).encode())
    name = resolved.runtime.engine.resolved
    if name not in _engines:
        _engines[name] = select_engine(name)[0]
        _engines[name].reap()
    return open_context(
        lab,
        run,
        _engines[name],
        options=parts.options,
        clock=SystemClock(),
        self_test=parts.self_test,
        evidence_origin="worker",
    )
