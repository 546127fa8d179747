"""What the Dask executor adds to a trial: the same experiment on one local slot and on one Dask worker, in turn.

    python benchmarks/bench_dask.py [--trials 100] [--rounds 3]

Each executor runs a small and a larger number of trials; the difference is what trials cost, without the start of a
cluster. CPU seconds are of this process (coordinator and scheduler) and of all its children (worker, sandboxes).
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from labaudit.pipeline.run import RunRequest, run_experiment
from labaudit.runner.context import RunOptions
from labaudit.runner.executor import Executor, LocalExecutor
from labaudit.runner.remote.executor import DaskExecutor
from labaudit.store.lab_folder import LabFolder
from tests.experiments import Quiet, write_experiment

FEW = 10
BOUND = 30
# As light as a harness can be, so that the interpreter's start does not hide what is measured.
AGENT = """#!/bin/sh
out=$(dirname "$LABAUDIT_TRIAL_INPUT")/../out
sed -e 's/.*"ids":\\({[^}]*}\\).*/{"schema_version":"trial_output_v1","ids":\\1,"outcome":"success","answer":"x"}/' \\
  "$LABAUDIT_TRIAL_INPUT" > "$out/trial_output.json"
"""
EXECUTORS: dict[str, Callable[[], Executor]] = {
    "local": lambda: LocalExecutor(1),
    "dask": lambda: DaskExecutor(None, workers=1),
}


class Cost(NamedTuple):
    """Seconds, of the clock and of CPUs."""

    wall: float
    cpu: float


class Timed(Quiet):
    """Notes when the first and the last trial ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[float] = []

    def trial(self, done: object) -> None:
        self.ends.append(time.monotonic())


def cpu() -> float:
    """CPU seconds of this process and of the children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def run_once(executor: Executor, trials: int) -> Cost:
    """From the first trial's end to the last one's by the clock; the whole run by CPU seconds."""
    with tempfile.TemporaryDirectory(prefix="bench-dask-") as name:
        folder = Path(name)
        tasks = [{"id": f"t{n}", "expected": "x"} for n in range(trials)]
        path = write_experiment(folder, tasks=tasks, variants=(), harness={"command": ["/bin/sh", "/harness/agent.sh"]})
        (folder / "harness" / "agent.sh").write_text(AGENT)
        progress, before = Timed(), cpu()
        request = RunRequest(sign=False, options=RunOptions(workers=1), executor=executor)
        result = run_experiment(path, LabFolder(folder / ".lab"), request, progress)
        assert result.inclusion.totals.included == trials, result.inclusion.totals
        return Cost(progress.ends[-1] - progress.ends[0], cpu() - before)


def per_trial(executor: Callable[[], Executor], trials: int) -> Cost:
    """What one more trial costs."""
    few, many = run_once(executor(), FEW), run_once(executor(), FEW + trials)
    return Cost((many.wall - few.wall) / trials, (many.cpu - few.cpu) / trials)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    found: dict[str, list[Cost]] = {name: [] for name in EXECUTORS}
    # What the first run of a process imports is no trial's cost.
    for executor in EXECUTORS.values():
        run_once(executor(), 2)
    for _ in range(options.rounds):
        for name, executor in EXECUTORS.items():
            found[name].append(per_trial(executor, options.trials))
    what = f"{options.rounds} rounds of {options.trials} trials, one slot, process engine"
    print(f"| {what} | local | dask | added | ratio |")
    print("|---|--:|--:|--:|--:|")
    for label, pick in (("by the clock, ms per trial", 0), ("CPU of all processes, ms per trial", 1)):
        # On a machine with other work the fastest round is nearest to what the executor itself costs.
        for how, choose in (("median", statistics.median), ("fastest", min)):
            local, dask = (1000 * choose([cost[pick] for cost in found[name]]) for name in EXECUTORS)
            print(f"| {label}, {how} | {local:.1f} | {dask:.1f} | {dask - local:.1f} | {dask / local:.2f} |")
    pairs = zip(found["local"], found["dask"], strict=True)
    added = [1000 * (there.wall - here.wall) for here, there in pairs]
    each = ", ".join(f"{one:.1f}" for one in added)
    print(f"\nAdded by the clock, each round: {each} ms (the aim: at most {BOUND}); load {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()
