"""What everything after the last trial costs, stage by stage, at growing numbers of trials.

    python benchmarks/bench_scale.py [--trials 1000,10000] [--folder DIR] [--keep]

100,000 trials need 10 GB and take an hour on two busy cores: `--trials 1000,10000,100000`. Each stage is a process of
its own, so that its peak memory is its own; the parent imports next to nothing, because a child's peak counts from it.
CPU seconds include starting Python and importing; the ratios are of what a trial adds to that, which a run of 20 trials
is measured for. `--folder` keeps runs between calls (/dev/shm keeps the disk out).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parent.parent
GRADER = "grader.pickle"
FEW = 20


class Cost(NamedTuple):
    """What one process used."""

    cpu: float
    peak_mib: float
    read: int
    written: int


def include(run_path: Path) -> None:
    """Observes every trial and judges which count; the grader that saw them is kept for `grade`."""
    import pickle

    from labaudit.runner.finish import include_trials
    from labaudit.runner.run_start import read_resolved
    from labaudit.store import atomic
    from labaudit.store.run_folder import RunFolder

    run = RunFolder(run_path)
    included, grader = include_trials(run, run.run_id, read_resolved(run)[0])
    atomic.write_bytes(run.inclusion, included.to_bytes())
    (run_path.parent / GRADER).write_bytes(pickle.dumps((grader, included)))


def analyse(run_path: Path) -> None:
    """Tables (the columnar index among them), comparisons, exemplars, suspects and diffs."""
    from labaudit.analysis import analyse_run
    from labaudit.store.run_folder import RunFolder

    analyse_run(RunFolder(run_path))


def grade(run_path: Path) -> None:
    """The run's grades."""
    import pickle

    from labaudit.runner.finish import grade_run
    from labaudit.store import atomic
    from labaudit.store.run_folder import RunFolder

    run = RunFolder(run_path)
    grader, included = pickle.loads((run_path.parent / GRADER).read_bytes())
    atomic.write_bytes(run.grades, grade_run(run, run.run_id, grader, included).to_bytes())


def list_artifacts(run_path: Path) -> None:
    """The artifacts that no trial lists."""
    from labaudit.runner.finish import list_other_artifacts
    from labaudit.store.run_folder import RunFolder

    list_other_artifacts(RunFolder(run_path), {})


def manifest(run_path: Path) -> None:
    """attestation.json, manifest.json and the root of the run tree."""
    from labaudit.attest.seal import write_manifest
    from labaudit.core.clock import SystemClock
    from labaudit.store.run_folder import RunFolder

    write_manifest(RunFolder(run_path), clock=SystemClock())


def sign(run_path: Path) -> None:
    """Statements, bundles, checkpoint, a proof per trial, links, SHA256SUMS."""
    from labaudit.attest.seal import sign_run
    from labaudit.attest.signers import KeySigner
    from labaudit.attest.trust_store import ensure_keys
    from labaudit.store.lab_folder import LabFolder
    from labaudit.store.run_folder import RunFolder

    keys = ensure_keys(LabFolder(run_path.parent.parent))
    sign_run(RunFolder(run_path), KeySigner(keys.signing), log_key=keys.log)


def verify(run_path: Path) -> None:
    """Every step of `labaudit verify`, with the lab's own key as the anchor."""
    from labaudit.cli import main as labaudit
    from labaudit.store.lab_folder import LabFolder

    lab = LabFolder(run_path.parent.parent)
    sys.argv = ["labaudit", "verify", str(run_path), "--key", str(lab.public_key)]
    labaudit()


def site(run_path: Path) -> None:
    """All pages and data of the site; the check of the run is `verify`, and is not counted again."""
    from labaudit.site import build_site
    from labaudit.site.reading.run_check import NOT_CHECKED

    build_site([run_path], run_path.parent.parent.parent / "site", checks=[NOT_CHECKED], bundle=False)


def index(run_path: Path) -> None:
    """Reading the columnar index back, as a later comparison of runs does."""
    from labaudit.analysis.trials.parquet import read_trials_parquet
    from labaudit.store.run_folder import RunFolder

    read_trials_parquet(RunFolder(run_path).trials_table)


STAGES: dict[str, Callable[[Path], None]] = {
    "include": include,
    "analyse": analyse,
    "grade": grade,
    "artifacts": list_artifacts,
    "manifest": manifest,
    "sign": sign,
    "verify": verify,
    "site": site,
    "index": index,
}


def measure(command: list[str]) -> Cost:
    """Runs a command to its end; its input and output are read from /proc before it is buried."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=TOP)
    told = child.stdout.read() if child.stdout else b""
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    counted = dict(line.split(": ") for line in Path(f"/proc/{child.pid}/io").read_text().splitlines())
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)} ended with {child.returncode}:\n{told.decode()[-2000:]}")
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(cpu, usage.ru_maxrss / 1024, int(counted["rchar"]), int(counted["wchar"]))


def made_run(folder: Path, trials: int) -> Path:
    """The synthetic run in `folder`, made when it is not there; what earlier stages wrote is cleared away."""
    found = sorted((folder / ".lab" / "runs").glob("run-*"))
    if not found:
        program = [sys.executable, str(TOP / "benchmarks" / "synth.py"), "--trials", str(trials), "--out", str(folder)]
        measure(program)
        found = sorted((folder / ".lab" / "runs").glob("run-*"))
    run = found[0]
    for path in (run / "analysis", folder / "site"):
        shutil.rmtree(path, ignore_errors=True)
    for name in ("inclusion.json", "grades.json", "artifacts.jsonl", "attestation.json", "manifest.json"):
        (run / name).unlink(missing_ok=True)
    for path in (run / "attestations").iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif not path.name.startswith("resolve."):
            path.unlink()
    return run


def stages_of(folder: Path, trials: int) -> dict[str, Cost]:
    """The cost of every stage over one run."""
    run = made_run(folder, trials)
    costs = {}
    for name in STAGES:
        program = [sys.executable, str(Path(__file__).resolve())]
        costs[name] = cost = measure([*program, "--stage", name, "--run", str(run)])
        if trials == FEW:
            continue
        each = 1000 * cost.cpu / trials
        print(
            f"| {trials:,} | {name} | {cost.cpu:.1f} | {each:.3f} | {cost.peak_mib:.0f} "
            f"| {cost.read / 1e6:.0f} | {cost.written / 1e6:.1f} |",
            flush=True,
        )
    return costs


def added(few: dict[str, Cost], many: dict[str, Cost], trials: int, names: list[str]) -> float:
    """CPU seconds that one more trial adds, over some stages."""
    return sum(many[name].cpu - few[name].cpu for name in names) / (trials - FEW)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", default="1000,10000", help="Numbers of trials, growing.")
    parser.add_argument("--folder", type=Path, help="Where runs are made and kept; else a temporary folder.")
    parser.add_argument("--stage", choices=list(STAGES), help=argparse.SUPPRESS)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        sys.path.insert(0, str(TOP))
        STAGES[options.stage](options.run)
        return
    sizes = [int(text) for text in options.trials.split(",")]
    print("| trials | stage | CPU s | CPU ms per trial | peak MiB | MB read | MB written |")
    print("|--:|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory(prefix="bench-scale-") as temporary:
        folder = options.folder or Path(temporary)
        found = {trials: stages_of(folder / str(trials), trials) for trials in [FEW, *sizes]}
    few, first, last = found[FEW], found[sizes[0]], found[sizes[-1]]
    print(f"\nWhat a trial adds, {sizes[-1]:,} trials beside {sizes[0]:,} (the aim: at most 1.3):\n")
    print("| stage | CPU ms per trial | ratio |\n|---|--:|--:|")
    for name, names in [*((name, [name]) for name in STAGES), ("all", list(STAGES))]:
        at_last, at_first = added(few, last, sizes[-1], names), added(few, first, sizes[0], names)
        ratio = f"{at_last / at_first:.2f}" if at_first * (sizes[0] - FEW) > 0.1 else "too little to compare"
        print(f"| {name} | {1000 * at_last:.3f} | {ratio} |")
    print(f"\nVerify at {sizes[-1]:,}: {last['verify'].peak_mib:.0f} MiB (the aim: at most 500).")


if __name__ == "__main__":
    main()
