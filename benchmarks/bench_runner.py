"""What planning and recording cost per trial beyond the engine: 1,000 trials on the process engine against a floor.

The floor does what the engine does with nothing recorded: the same sandboxes opened, started, waited for, collected and
removed. CPU seconds are those of this process, children (the harness itself) left out.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from labaudit.engines.process_engine import ProcessEngine
from labaudit.engines.protocol import SandboxLabels, SandboxSpec
from labaudit.pipeline.run import RunRequest, run_experiment
from labaudit.runner.context import RunOptions
from labaudit.runner.execution import unfinished
from labaudit.runner.run_start import read_resolved, read_schedule
from labaudit.store.lab_folder import LabFolder
from tests.experiments import Quiet, write_experiment

TRIALS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
# As light as a harness can be, so that the interpreter's start does not hide what is measured.
AGENT = """#!/bin/sh
out=$(dirname "$LABAUDIT_TRIAL_INPUT")/../out
sed -e 's/.*"ids":\\({[^}]*}\\).*/{"schema_version":"trial_output_v1","ids":\\1,"outcome":"success","answer":"x"}/' \\
  "$LABAUDIT_TRIAL_INPUT" > "$out/trial_output.json"
"""


def cpu() -> float:
    """CPU seconds of this process alone."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Staged(Quiet):
    """Notes CPU and memory when the trials begin and end."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: dict[str, tuple[float, float, int]] = {}

    def mark(self, name: str) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.marks[name] = (cpu(), time.monotonic(), peak)

    def trials(self, total: int, done: int) -> None:
        self.mark("begin")

    def trial(self, done: object) -> None:
        self.count = getattr(self, "count", 0) + 1
        if self.count == TRIALS // 10:
            self.mark("tenth")

    def stage(self, text: str) -> None:
        if text.startswith("judging"):
            self.mark("end")


def floor(folder: Path) -> float:
    """CPU per sandbox with nothing recorded."""
    engine = ProcessEngine()
    image = engine.resolve_image(None).id
    begin = cpu()
    for number in range(TRIALS):
        spec = SandboxSpec(
            image=image,
            command=("/bin/sh", "/harness/agent.sh"),
            labels=SandboxLabels("floor", str(number)),
            env={"LABAUDIT_TRIAL_INPUT": "/in/trial_input.json"},
            harness=folder / "harness",
        )
        sandbox = engine.open(spec)
        (Path(sandbox.host.input) / "trial_input.json").write_text('{"ids":{}}')
        sandbox.start()
        sandbox.wait(20)
        sandbox.collect_outputs(folder / "collected" / str(number))
        sandbox.remove()
    return (cpu() - begin) / TRIALS


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tasks = [{"id": f"t{n}", "expected": "x"} for n in range(TRIALS // 2)]
        path = write_experiment(folder, tasks=tasks, harness={"command": ["/bin/sh", "/harness/agent.sh"]})
        (folder / "harness" / "agent.sh").write_text(AGENT)
        lab = LabFolder(folder / ".lab")
        progress = Staged()
        before = cpu()
        result = run_experiment(path, lab, RunRequest(sign=False, options=RunOptions(workers=1)), progress)
        total = cpu() - before
        assert result.inclusion.totals.included == TRIALS, result.inclusion.totals
        trials_cpu = (progress.marks["end"][0] - progress.marks["begin"][0]) / TRIALS
        base = floor(folder)
        began = time.monotonic()
        planned = read_schedule(result.run)
        read_resolved(result.run)
        left = unfinished(result.run, planned)
        decide = time.monotonic() - began
        growth = (progress.marks["end"][2] - progress.marks["tenth"][2]) / 1024
        print(f"| what ({TRIALS} trials, process engine) | figure | bound |")
        print("|---|---|---|")
        print(f"| CPU per sandbox with nothing recorded (floor) | {base * 1000:.1f} ms | |")
        print(f"| CPU per recorded trial | {trials_cpu * 1000:.1f} ms | |")
        print(f"| planning and recording beyond the floor | {(trials_cpu - base) * 1000:.1f} ms | 15 ms |")
        print(f"| the same as a ratio to the floor | {trials_cpu / base:.2f}x | |")
        print(f"| whole run, all stages, CPU per trial | {total / TRIALS * 1000:.1f} ms | |")
        print(f"| memory grown from the first tenth of the trials to the last | {growth:.1f} MiB | flat |")
        print(f"| deciding that a finished run has {len(left)} trials left | {decide:.2f} s | 2 s |")


if __name__ == "__main__":
    main()
