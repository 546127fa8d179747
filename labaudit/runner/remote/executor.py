"""`DaskExecutor`: trials on a Dask cluster, each attempt claimed here first and committed here once.

A claim is a staged attempt folder with its own log, made before anything is sent. A claim that never gets its package
(a dead worker, a refused one, a killed coordinator) is a recorded lost attempt; a package for an attempt that is
already committed has nowhere to go.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

from labaudit.errors import EnvironmentLacks, Interrupted
from labaudit.planning.schedule import PlannedTrial
from labaudit.records.fields import EvidenceOrigin
from labaudit.records.trial_record import TrialRecord
from labaudit.runner.commit import close_lost_attempt, log_identity, staging
from labaudit.runner.context import RunContext
from labaudit.runner.executor import TrialDone
from labaudit.runner.remote.cluster import Cluster, WorkerIdentity, connect, require_dask, require_tls
from labaudit.runner.remote.description import describe
from labaudit.runner.remote.ingest import WorkerRefused, ingest
from labaudit.runner.remote.parts import RunParts, parts_of
from labaudit.runner.remote.worker import Package, run_on_worker
from labaudit.runner.trial import give_up, take_over
from labaudit.store.event_log import EventLog
from labaudit.store.run_folder import TrialFolder

POLL_SECONDS = 0.5
# A task of a worker that is gone this long will not come back: nobody else may run it, so Dask would wait for ever.
GONE_SECONDS = 5.0
# A worker that restarts is back by then; a run that has nobody else waits for it.
NO_WORKER_SECONDS = 30.0
# This many attempts per slot are in flight, so that a worker never waits for the coordinator.
WINDOW = 2


class DaskExecutor:
    """Runs trials on a scheduler's workers, or on a cluster that is started for the run."""

    evidence_origin: EvidenceOrigin = "worker"

    def __init__(self, scheduler: str | None, *, workers: int, objects_url: str | None = None) -> None:
        # What can be told by looking is told before there is a run to resume.
        require_dask()
        if scheduler is not None:
            require_tls(scheduler)
        self._scheduler = scheduler
        self._workers = workers
        self._objects_url = objects_url

    def run(self, ctx: RunContext, planned: Sequence[PlannedTrial], on_done: Callable[[TrialDone], None]) -> None:
        """Runs them all; Interrupted leaves every trial whole or to be run again."""
        with connect(self._scheduler, self._workers) as cluster:
            _Run(ctx, cluster, planned, on_done, self._objects_url).go()


class _Run:
    def __init__(
        self,
        ctx: RunContext,
        cluster: Cluster,
        planned: Sequence[PlannedTrial],
        on_done: Callable[[TrialDone], None],
        objects_url: str | None,
    ) -> None:
        self._ctx, self._cluster, self._on_done, self._objects_url = ctx, cluster, on_done, objects_url
        self._waiting = iter(planned)
        self._again: list[PlannedTrial] = []
        self._failures: dict[str, int] = {}
        self._running: dict[Any, tuple[PlannedTrial, int, WorkerIdentity]] = {}
        self._load: dict[str, int] = {}
        self._described: object = None
        self._gone_since: dict[str, float] = {}
        self._parts: RunParts = parts_of(ctx)
        self._sent: dict[WorkerIdentity, Any] = {}

    def go(self) -> None:
        """Until nothing waits and nothing runs."""
        try:
            while True:
                self._submit()
                if not self._running:
                    break
                self._collect()
                if self._ctx.stop.is_set():
                    raise Interrupted("the run was interrupted", hint=f"labaudit resume {self._ctx.run_id}")
        except (OSError, TimeoutError, CancelledError) as error:
            self._abandon()
            hint = f"bring it back, then: labaudit resume {self._ctx.run_id} --executor dask"
            raise EnvironmentLacks("the scheduler went away", where=self._cluster.address, hint=hint) from error
        except BaseException:
            self._abandon()
            raise
        finally:
            self._describe()

    def _submit(self) -> None:
        room = self._cluster.slots() * WINDOW - len(self._running)
        while room > 0 and (planned := self._next()) is not None:
            done, record = take_over(self._ctx, planned)
            if record is not None:
                self._on_done(TrialDone(planned, record))
                continue
            worker, parts = self._choose()
            self._describe()
            attempt = self._claim(planned, done + 1)
            # One address per task: the rules about lost attempts need to know who had it.
            task = functools.partial(
                run_on_worker,
                planned=planned,
                attempt=attempt,
                base=worker.base,
                worker_id=worker.worker_id,
                objects_url=self._objects_url,
            )
            future = self._cluster.client.submit(
                task,
                parts,
                key=f"{self._ctx.run_id}-{planned.trial_id}.{attempt}",
                workers=[worker.address],
                allow_other_workers=False,
                resources=self._cluster.resources(),
                retries=0,
                pure=False,
            )
            self._running[future] = (planned, attempt, worker)
            self._load[worker.address] = self._load.get(worker.address, 0) + 1
            room -= 1

    def _next(self) -> PlannedTrial | None:
        return self._again.pop() if self._again else next(self._waiting, None)

    def _parts_on(self, worker: WorkerIdentity) -> Any:
        """The run's parts on one worker, sent by us: no worker depends on another's copy. None when it is gone."""
        if worker not in self._sent or self._sent[worker].status != "finished":
            try:
                self._sent[worker] = self._cluster.client.scatter(self._parts, workers=[worker.address], hash=False)
            except (KeyError, OSError, TimeoutError):
                # KeyError is how a scheduler says that it does not know the worker any more.
                self._cluster.present(fresh=True)  # ConnectionError when it is the scheduler that is gone
                return None
        return self._sent[worker]

    def _choose(self) -> tuple[WorkerIdentity, Any]:
        """The least busy worker, and the run's parts on it; waits a while when there is none."""
        deadline = time.monotonic() + NO_WORKER_SECONDS
        while time.monotonic() < deadline and not self._ctx.stop.is_set():
            usable = self._cluster.usable()
            for worker in sorted(usable, key=lambda one: (self._load.get(one.address, 0), one.worker_id)):
                if (parts := self._parts_on(worker)) is not None:
                    return worker, parts
            time.sleep(POLL_SECONDS)
        if self._ctx.stop.is_set():
            raise Interrupted("the run was interrupted", hint=f"labaudit resume {self._ctx.run_id}")
        refused = ", ".join(sorted(self._cluster.refused)) or "none"
        raise EnvironmentLacks("no worker is left", where=self._cluster.address, hint=f"refused: {refused}")

    def _claim(self, planned: PlannedTrial, attempt: int) -> int:
        """The number of the new attempt; its folder is made exclusively, and its log says that it was claimed."""
        place = staging(self._ctx, planned, attempt)
        place.mkdir(parents=True)
        log = EventLog(
            TrialFolder(place).events, log_identity(self._ctx, planned, attempt), clock=self._ctx.clock
        )
        log.append("attempt.claimed", durable=True)
        log.close()
        return attempt

    def _collect(self) -> None:
        from distributed import wait

        try:
            done, _ = wait(  # type: ignore[no-untyped-call]
                list(self._running), timeout=POLL_SECONDS, return_when="FIRST_COMPLETED"
            )
        except TimeoutError:
            done = set()
        except CancelledError:
            # A task is cancelled when the worker that holds what it needs, its own, dies before it begins.
            self._cluster.present(fresh=True)  # ConnectionError when it is the scheduler that is gone
            done = {future for future in self._running if future.status == "cancelled"}
        for future in self._stranded():
            planned, attempt, worker = self._running.pop(future)
            self._load[worker.address] -= 1
            future.cancel(force=True)
            if (record := self._lost(planned, attempt, f"worker {worker.worker_id} went away")) is not None:
                self._on_done(TrialDone(planned, record))
        for future in done & self._running.keys():
            planned, attempt, worker = self._running.pop(future)
            self._load[worker.address] -= 1
            record = self._take(future, planned, attempt, worker)
            future.release()
            if record is not None:
                self._on_done(TrialDone(planned, record))

    def _take(self, future: Any, planned: PlannedTrial, attempt: int, worker: WorkerIdentity) -> TrialRecord | None:
        if future.status != "finished":
            told = future.exception() if future.status == "error" else None
            why = f"{type(told).__name__}: {told}"[:300] if told else future.status
            reason = f"worker {worker.worker_id} was lost: {why}"
            return self._lost(planned, attempt, reason)
        package = self._fetch(future, worker)
        if package is None:
            return self._lost(planned, attempt, f"worker {worker.worker_id} went away with its result")
        if package.lost is not None:
            return self._lost(planned, attempt, f"worker {worker.worker_id}: {package.lost}")
        try:
            return ingest(
                self._ctx, planned, attempt, package, known_keys=[worker.key_id], objects_url=self._objects_url
            )
        except WorkerRefused as refused:
            self._cluster.refused.add(worker.worker_id)
            return self._lost(planned, attempt, refused.reason)

    def _stranded(self) -> list[Any]:
        """What is pinned to a worker that has been gone for a while."""
        now, present = time.monotonic(), self._cluster.present()
        for _, _, worker in self._running.values():
            if worker.address in present:
                self._gone_since.pop(worker.address, None)
            else:
                self._gone_since.setdefault(worker.address, now)
        overdue = {address for address, since in self._gone_since.items() if now - since > GONE_SECONDS}
        return [future for future, (_, _, worker) in self._running.items() if worker.address in overdue]

    def _fetch(self, future: Any, worker: WorkerIdentity) -> Package | None:
        """The package of a finished task; None when its worker was lost before it was handed over."""
        while True:
            try:
                package: Package = future.result(timeout=GONE_SECONDS)
            except TimeoutError:
                if worker.address not in self._cluster.present():
                    future.cancel(force=True)
                    return None
            except CancelledError:
                self._cluster.present(fresh=True)  # ConnectionError when it is the scheduler that is gone
                return None
            else:
                return package

    def _lost(self, planned: PlannedTrial, attempt: int, reason: str) -> TrialRecord | None:
        close_lost_attempt(self._ctx, planned, attempt, reason)
        failures = self._failures[planned.trial_id] = self._failures.get(planned.trial_id, 0) + 1
        if failures > self._ctx.resolved.design.retries.infra:
            return give_up(self._ctx, planned, attempt)
        self._again.append(planned)
        return None

    def _abandon(self) -> None:
        """What still runs is called back and becomes lost attempts; containers on workers end with their workers."""
        with suppress(Exception):
            # The scheduler may be gone; then there is nobody to tell.
            self._cluster.client.cancel(list(self._running), force=True)
        for planned, attempt, _ in self._running.values():
            close_lost_attempt(self._ctx, planned, attempt, "the run was interrupted")
        self._running.clear()

    def _describe(self) -> None:
        """Keeps executor.json true to who takes part; written before a new worker's first trial is claimed."""
        known = tuple(sorted((worker.worker_id, worker.key_id) for worker in self._cluster.workers.values()))
        state = (known, frozenset(self._cluster.refused))
        if state != self._described:
            describe(self._ctx, self._cluster)
            self._described = state
