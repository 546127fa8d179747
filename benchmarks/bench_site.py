"""The site builder beside a floor and beside Allure 3 on the same number of results, in the same run.

    python benchmarks/bench_site.py [--trials N] [--run FOLDER] [--allure FOLDER|none]

Floor: the same run's files read once, and files of the same number and sizes as the site's written once; no parsing, no
hashing, no page. The run is made by the real writers (tests/make_run.py); the check of the run is not counted. Allure
is taken from `--allure` (a folder with node_modules), else installed into a temporary folder, else left out by name.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parent.parent

BUILD = """
import sys
from pathlib import Path
from labaudit.site import build_site
from labaudit.site.reading.run_check import NOT_CHECKED
build_site([Path(sys.argv[1])], Path(sys.argv[2]), checks=[NOT_CHECKED], bundle=False)
"""
FLOOR = """
import json, os, sys
from pathlib import Path
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        with open(os.path.join(folder, name), "rb") as stream:
            stream.read()
out = Path(sys.argv[2])
block = b"x" * (64 << 20)
for number, size in enumerate(json.loads(Path(sys.argv[3]).read_bytes())):
    folder = out / str(number % 16)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / str(number), "wb") as stream:
        stream.write(block[:size])
"""


class Cost(NamedTuple):
    """CPU seconds and peak memory of a child process, with what it wrote."""

    cpu: float
    mib: float
    files: int
    size: int


def measure(command: list[str], out: Path, *, cwd: Path | None = None) -> Cost | None:
    """Runs a command and gives its cost; None when it fails."""
    child = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    if status != 0:
        return None
    files = [path.stat().st_size for path in out.rglob("*") if path.is_file()]
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, len(files), sum(files))


def made_run(folder: Path, tasks: int) -> Path:
    """A run of two arms, made in a process of its own: a child's peak memory is never below that of its parent."""
    command = [sys.executable, str(TOP / "tests" / "make_run.py"), str(folder), "--tasks", str(tasks)]
    return Path(subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True).stdout.strip())


def site_and_floor(run: Path, work: Path) -> tuple[Cost, Cost]:
    site = measure([sys.executable, "-c", BUILD, str(run), str(work / "site")], work / "site")
    assert site is not None
    sizes = [path.stat().st_size for path in (work / "site").rglob("*") if path.is_file()]
    (work / "sizes.json").write_text(json.dumps(sizes))
    command = [sys.executable, "-c", FLOOR, str(run), str(work / "floor"), str(work / "sizes.json")]
    floor = measure(command, work / "floor")
    assert floor is not None
    return site, floor


def allure_results(run: Path, out: Path) -> int:
    """The run's trials as Allure results: one per trial, a step per event."""
    out.mkdir(parents=True)
    count = 0
    for folder in sorted((run / "trials").iterdir()):
        record = json.loads((folder / "trial_record.json").read_bytes())
        log = folder / "events.jsonl"
        events = [json.loads(line) for line in log.read_bytes().splitlines()] if log.is_file() else []
        names = record["ids"]
        status = {"success": "passed", "failure": "failed"}.get(record["outcome"], "broken")
        result = {
            "uuid": f"00000000-0000-4000-8000-{count:012d}",
            "name": names["trial_id"],
            "fullName": f"{names['variant_id']}/{names['task_id']}",
            "historyId": names["trial_id"],
            "status": status,
            "start": 1_800_000_000_000 + count,
            "stop": 1_800_000_000_050 + count,
            "labels": [{"name": "suite", "value": names["variant_id"]}],
            "parameters": [{"name": "replicate", "value": str(names["repl_idx"])}],
            "steps": [{"name": event["event_type"], "status": "passed", "start": 1, "stop": 2} for event in events],
        }
        (out / f"{result['uuid']}-result.json").write_text(json.dumps(result))
        count += 1
    return count


def allure(run: Path, work: Path, given: str | None) -> Cost | str:
    """Allure's cost for the same results, or why it was not measured."""
    if given == "none":
        return "left out"
    folder = Path(given) if given else work / "npm"
    if given is None:
        folder.mkdir()
        install = ["npm", "install", "allure@3", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder)]
        try:
            done = subprocess.run(install, capture_output=True, timeout=180, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return "npm cannot install allure@3 here"
        if done.returncode:
            return "npm cannot install allure@3 here"
    program = (folder / "node_modules" / ".bin" / "allure").resolve()
    allure_results(run, work / "allure-results")
    command = ["node", str(program), "generate", "allure-results", "--output", "allure-report"]
    if shutil.which("unshare") and os.geteuid() == 0:
        # A foreign program: without a network it cannot call home.
        command = ["unshare", "-n", *command]
    cost = measure(command, work / "allure-report", cwd=work)
    return cost if cost is not None else "allure generate failed"


def table_ready(site: Path) -> str:
    """Milliseconds from opening trials.html by double-click to a table that filters, over all rows."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        return "no browser"
    from playwright.sync_api import sync_playwright

    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        spans = []
        for _ in range(3):
            page = browser.new_context().new_page()
            started = time.perf_counter()
            page.goto((site / "trials.html").as_uri())
            page.wait_for_selector("#tool[data-ready]", state="attached")
            spans.append(time.perf_counter() - started)
        browser.close()
    return f"{1000 * min(spans):.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--run", type=Path, help="A sealed run folder instead of one that is made here.")
    parser.add_argument("--allure", help="A folder with node_modules/allure, or none.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-site-") as folder:
        work = Path(folder)
        run = options.run
        if run is None:
            run = made_run(work / "lab", options.trials // 2)
        trials = sum(1 for _ in (run / "trials").iterdir())
        site, floor = site_and_floor(run, work)
        other = allure(run, work, options.allure)
        pages = [path.stat().st_size for path in (work / "site" / "trials").iterdir()]
        ready = table_ready(work / "site")
        print(f"{trials:,} trials\n")
        print("| | CPU s | to the floor | CPU ms per trial | peak MiB | files per trial | MB |")
        print("|---|--:|--:|--:|--:|--:|--:|")
        rows: list[tuple[str, Cost | str]] = [
            ("floor: read the run, write as many bytes", floor),
            ("labaudit site", site),
            ("Allure 3 generate", other),
        ]
        for name, cost in rows:
            if isinstance(cost, str):
                print(f"| {name} | {cost} | | | | | |")
                continue
            print(
                f"| {name} | {cost.cpu:.1f} | {cost.cpu / floor.cpu:.1f} | {1000 * cost.cpu / trials:.2f} |"
                f" {cost.mib:.0f} | {cost.files / trials:.2f} | {cost.size / 1e6:.0f} |"
            )
        print(f"\nHTML per trial {sum(pages) / trials / 1000:.1f} KB; table of all rows ready on file:// in {ready}.")


if __name__ == "__main__":
    main()
