"""Planned trials to committed ones, some at a time, on this machine.

`Executor` is the seam that a cluster fills as well: it gets trials that still need to run and says when each has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Protocol

from labaudit.errors import Interrupted
from labaudit.planning.schedule import PlannedTrial
from labaudit.records.fields import EvidenceOrigin, Scalar
from labaudit.records.trial_record import TrialRecord
from labaudit.runner.context import RunContext
from labaudit.runner.trial import run_trial


@dataclass(frozen=True)
class Measured:
    """The first primary metric of one trial: who measured it, and what; None is missing."""

    metric: str
    source: str
    value: Scalar


@dataclass(frozen=True)
class TrialDone:
    """One ended trial, for progress."""

    planned: PlannedTrial
    record: TrialRecord
    primary: Measured | None = None


class Executor(Protocol):
    """Runs trials."""

    @property
    def evidence_origin(self) -> EvidenceOrigin:
        """Whose word the evidence is: the runner's own, or a worker's."""
        ...

    def run(
        self, ctx: RunContext, planned: Sequence[PlannedTrial], on_done: Callable[[TrialDone], None]
    ) -> None:
        """Runs them all; Interrupted when it was stopped, with every trial either whole or to be run again."""
        ...


class LocalExecutor:
    """Worker threads on this machine; a trial spends its time waiting for its sandbox, so threads are enough."""

    evidence_origin: EvidenceOrigin = "local"

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def run(
        self, ctx: RunContext, planned: Sequence[PlannedTrial], on_done: Callable[[TrialDone], None]
    ) -> None:
        """Never queues more than the workers can take, so that memory does not grow with the schedule."""
        waiting = iter(planned)
        running: dict[Future[TrialRecord | None], PlannedTrial] = {}
        with ThreadPoolExecutor(self._workers, thread_name_prefix="trial") as pool:
            try:
                while True:
                    while len(running) < self._workers and (following := next(waiting, None)) is not None:
                        running[pool.submit(run_trial, ctx, following)] = following
                    if not running:
                        return
                    done, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                    for future in done:
                        trial = running.pop(future)
                        record = future.result()
                        if record is not None:
                            on_done(TrialDone(trial, record))
                    if ctx.stop.is_set():
                        raise Interrupted("the run was interrupted", hint=f"labaudit resume {ctx.run_id}")
            except BaseException:
                # Whatever ends the loop, the sandboxes must end too before the threads are left.
                ctx.stop.set()
                raise


def stop_on_interrupt(stop: threading.Event) -> Callable[[int, object], None]:
    """A signal handler: the first signal stops the run cleanly, a second one ends the program at once."""

    def handle(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    return handle
