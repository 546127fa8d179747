"""3,500 made-up Terminal-Bench trials imported, beside the floor of copying and parsing the same files."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from labaudit.importers.import_run import import_results, read_results
from labaudit.importers.protocol import ReadOptions
from labaudit.importers.source_files import SourceFiles
from labaudit.store.lab_folder import LabFolder

SUBMISSIONS, RUNS, TASKS = 7, 5, 100


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of one call, the kernel's work for it included."""
    started = time.process_time()
    work()
    return time.process_time() - started


def make_results(folder: Path) -> None:
    for submission in range(SUBMISSIONS):
        for run in range(RUNS):
            place = folder / "results" / "made-up@1" / f"submission-{submission}" / f"run-{run}"
            rows = [row(submission, run, task) for task in range(TASKS)]
            for one in rows:
                path = place / str(one["task_id"]) / str(one["trial_name"]) / "results.json"
                path.parent.mkdir(parents=True)
                path.write_text(json.dumps(one))
            resolved = sum(one["is_resolved"] is True for one in rows)
            total = {
                "results": rows,
                "n_resolved": resolved,
                "n_unresolved": TASKS - resolved,
                "accuracy": resolved / TASKS,
            }
            (place / "results.json").write_text(json.dumps(total))


def row(submission: int, run: int, task: int) -> dict[str, object]:
    verdict = None if (task + run) % 50 == 0 else (task * 7 + submission + run) % 3 == 0
    return {
        "id": f"{submission}-{run}-{task}",
        "trial_name": f"task-{task}.1-of-1.run-{run}",
        "task_id": f"task-{task}",
        "instruction": "made up " * 40,
        "is_resolved": verdict,
        "failure_mode": "parse_error" if verdict is None else "unset",
        "parser_results": {"test_one": "passed"},
        "total_input_tokens": 1000 + task,
        "total_output_tokens": 100 + run,
        "trial_started_at": "2026-01-01T00:00:00+00:00",
        "trial_ended_at": f"2026-01-01T00:01:{task % 60:02d}+00:00",
    }


def copy_and_parse(source: Path, target: Path) -> None:
    shutil.copytree(source, target)
    for path in target.rglob("*.json"):
        json.loads(path.read_bytes())


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_results(folder / "in")
        source = [folder / "in"]
        floor = cpu(lambda: copy_and_parse(folder / "in", folder / "copy"))
        read = cpu(lambda: read_results("terminal-bench", source, SourceFiles(), ReadOptions()))
        written = cpu(lambda: import_results("terminal-bench", source, LabFolder(folder / "lab")))
    trials = SUBMISSIONS * RUNS * TASKS
    print("| what | trials | CPU s | ratio to copying and parsing the files |")
    print("|---|---|---|---|")
    print(f"| read, totals recomputed | {trials:,} | {read:.2f} | {read / floor:.1f} |")
    print(f"| imported: every trial with log, records, grades | {trials:,} | {written:.2f} | {written / floor:.1f} |")


if __name__ == "__main__":
    main()
