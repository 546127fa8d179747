"""Runs every benchmarks/bench_*.py in its own interpreter and prints their tables under one another.

    python benchmarks/run_all.py [topic ...]

A benchmark that fails is named at the end and makes the exit code 1; the others still run.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def chosen(topics: list[str]) -> list[Path]:
    """The benchmarks to run, in name order; an unknown topic ends the program with what there is."""
    known = {path.stem.removeprefix("bench_"): path for path in sorted(FOLDER.glob("bench_*.py"))}
    unknown = [topic for topic in topics if topic not in known]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; known: {', '.join(known) or 'none'}")
    return [known[topic] for topic in topics] if topics else list(known.values())


def main() -> int:
    benchmarks = chosen(sys.argv[1:])
    machine = f"{platform.machine()}, {platform.system()}"
    print(f"# Benchmarks\n\nPython {platform.python_version()}, {machine}\n", flush=True)
    failed = []
    for path in benchmarks:
        print(f"## {path.stem.removeprefix('bench_')}\n", flush=True)
        started = time.perf_counter()
        done = subprocess.run([sys.executable, str(path)], cwd=FOLDER.parent, check=False)
        print(f"\n({time.perf_counter() - started:.1f} s)\n", flush=True)
        if done.returncode != 0:
            failed.append(path.name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
