"""`labaudit verify` beside its peer (model_signing verify, key mode) and its floor (sha256sum) on the same bytes.

    python benchmarks/bench_verify.py [--trials N]     N trials for the last rows (default 1000; 10000 takes minutes)

Times are CPU seconds of whole processes, start included, best of three.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from labaudit.attest.run_reader import read_totals
from labaudit.store.event_log import EventLog, LogIdentity
from labaudit.verify.checks.events import LogReader
from tests.make_run import MadeRun, RunPlan, make_run

SCRIPTS = Path(sys.executable).parent
MANY = {f"data/file{number:04d}.bin": 50_000 for number in range(2000)}
ONE = {"data/large.bin": 1_000_000_000}
EVENTS = 200_000


def cpu(*command: object, cwd: Path, times: int = 3) -> float:
    """CPU seconds of a process, best of `times`."""
    best = float("inf")
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            sys.exit(
                f"{' '.join(str(part) for part in command)[:200]} ended with {done.returncode}:\n{done.stderr[-500:]}"
            )
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def run_with(folder: Path, sizes: dict[str, int]) -> MadeRun:
    """A sealed run that also holds files of these sizes."""
    block = os.urandom(1 << 20)
    plan = RunPlan(tasks=1, analysis=False, lost=frozenset(), failures=frozenset())

    def write(run_folder: Path) -> None:
        for number, (name, size) in enumerate(sizes.items()):
            path = run_folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as stream:
                stream.write(number.to_bytes(8, "big"))
                left = size - 8
                while left:
                    left -= stream.write(block[: min(left, len(block))])

    return make_run(folder, plan, before_seal=write)


def beside_the_peer(name: str, folder: Path, sizes: dict[str, int], target: str) -> None:
    made = run_with(folder, sizes)
    run, key = made.run.path, made.lab.public_key
    ours = cpu(SCRIPTS / "labaudit", "verify", run, "--key", key, cwd=folder)
    floor = cpu("sha256sum", "--check", "--quiet", "attestations/SHA256SUMS", cwd=run)
    signature = folder / "model.sig"
    sign = ("sign", "key", "--private_key", made.lab.signing_key, "--signature", signature, run)
    cpu(SCRIPTS / "model_signing", *sign, cwd=folder, times=1)
    verify = ("verify", "key", "--public_key", key, "--signature", signature, run)
    peer = cpu(SCRIPTS / "model_signing", *verify, cwd=folder)
    row(name, ours, f"{ours / peer:.2f} of model_signing ({peer:.2f} s)", f"{ours / floor:.2f} of sha256sum", target)


def chain_and_tree(folder: Path) -> None:
    identity = LogIdentity("run-1", "t1", "base", "t1", 0, 1, "sha256:" + "0" * 64)
    log = EventLog(folder / "events.jsonl", identity)
    for _ in range(EVENTS - 1):
        log.append("harness.output", step_index=1)
    log.seal(folder / "events.head")
    best = float("inf")
    for _ in range(3):
        reader = LogReader("events.jsonl", identity.ids, 1, identity.resolved_digest, set())
        started = time.process_time()
        with (folder / "events.jsonl").open("rb") as stream:
            assert reader.read(stream) is None
        best = min(best, time.process_time() - started)
    row("chain and tree", best, f"{EVENTS / best:,.0f} events per CPU s", "", "at least 150,000")


def many_trials(folder: Path, trials: int) -> None:
    plan = RunPlan(tasks=trials // 2, analysis=False, lost=frozenset(), failures=frozenset())
    made = make_run(folder, plan)
    files = sum(1 for path in made.run.path.rglob("*") if path.is_file())
    ours = cpu(SCRIPTS / "labaudit", "verify", made.run.path, "--key", made.lab.public_key, cwd=folder, times=1)
    floor = cpu("sha256sum", "--check", "--quiet", "attestations/SHA256SUMS", cwd=made.run.path, times=1)
    assert len(read_totals(made.run).leaves) == trials
    each = f"{1000 * ours / trials:.2f} ms per trial, {files:,} files"
    row(f"{trials:,} trials", ours, each, f"{ours / floor:.1f} of sha256sum", "10,000 in 30 s")


def row(name: str, seconds: float, ratio: str, floor: str, target: str) -> None:
    print(f"| {name} | {seconds:.2f} | {ratio} | {floor} | {target} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=1000)
    trials = parser.parse_args().trials
    print("| what | CPU s | beside | floor | aim |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="labaudit-bench-") as temporary:
        folder = Path(temporary)
        for name in ("tiny", "many", "one", "events", "trials"):
            (folder / name).mkdir()
        tiny = make_run(folder / "tiny", RunPlan(tasks=1, analysis=False))
        cold = cpu(SCRIPTS / "labaudit", "verify", tiny.run.path, "--key", tiny.lab.public_key, cwd=folder)
        python = cpu(sys.executable, "-c", "pass", cwd=folder)
        row("cold start on a tiny run", cold, f"{cold / python:.0f} of an empty Python", "", "at most 0.6 s")
        beside_the_peer("2,000 files of 50 KB", folder / "many", MANY, "at most 0.5 of the peer")
        beside_the_peer("one file of 1 GB", folder / "one", ONE, "at most 0.8 of the peer")
        chain_and_tree(folder / "events")
        many_trials(folder / "trials", trials)


if __name__ == "__main__":
    main()
