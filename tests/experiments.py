"""Small real experiments for tests: a folder with experiment.yaml, tasks and a harness, run by the real pipeline."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from labaudit.pipeline.run import RunRequest, RunResult, run_experiment
from labaudit.records.trial_record import TrialRecord
from labaudit.runner.context import RunOptions
from labaudit.runner.executor import TrialDone
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder, TrialFolder

ECHO = """
import json, os
given = json.load(open(os.environ["LABAUDIT_TRIAL_INPUT"]))
out = given["runtime"]["paths"]["out"]
answer = given["bindings"].get("greeting", "Hello") + " " + given["task"]["name"]
result = {"schema_version": "trial_output_v1", "ids": given["ids"], "outcome": "success", "answer": answer}
json.dump(result, open(out + "/trial_output.json", "w"))
"""
TASKS = ({"id": "a", "name": "Ann", "expected": "Hello Ann"}, {"id": "b", "name": "Bob", "expected": "Hello Bob"})


class Quiet:
    """A progress that keeps what it is told."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.done: list[TrialDone] = []

    def stage(self, text: str) -> None:
        self.stages.append(text)

    def trials(self, total: int, done: int) -> None:
        self.stages.append(f"{done}/{total}")

    def trial(self, done: TrialDone) -> None:
        self.done.append(done)


def write_experiment(
    folder: Path,
    *,
    agent: str = ECHO,
    tasks: Sequence[Mapping[str, Any]] = TASKS,
    variants: Sequence[str] = ("Hi",),
    harness: Mapping[str, Any] | None = None,
    runtime: Mapping[str, Any] | None = None,
    **top: Any,
) -> Path:
    """Writes an experiment with the given agent; keyword blocks are merged over a small default."""
    (folder / "harness").mkdir(parents=True, exist_ok=True)
    (folder / "harness" / "agent.py").write_text(agent)
    (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    document: dict[str, Any] = {
        "version": "0.3",
        "experiment": {"id": "small"},
        "dataset": {"path": "tasks.jsonl"},
        "design": {"seed": 3},
        "baseline": {"id": "base", "bindings": {"greeting": "Hello"}},
        "variant_plan": [{"id": f"v{n}", "bindings": {"greeting": word}} for n, word in enumerate(variants)],
        "runtime": {
            "engine": "process",
            "harness": {"command": ["python3", "/harness/agent.py"], "source": "harness", **(harness or {})},
            "timeouts": {"trial_seconds": 20},
            **(runtime or {}),
        },
        "evaluators": [{"id": "exact", "type": "exact_match"}],
    }
    for key, value in top.items():
        document[key] = {**document.get(key, {}), **value} if isinstance(value, dict) else value
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def run(folder: Path, path: Path | None = None, *, progress: Quiet | None = None, **options: Any) -> RunResult:
    """Runs the experiment of `folder` in a lab below it."""
    sign = options.pop("sign", False)
    engine = options.pop("engine", None)
    request = RunRequest(engine=engine, sign=sign, options=RunOptions(**{"workers": 2, **options}))
    return run_experiment(path or folder / "experiment.yaml", LabFolder(folder / ".lab"), request, progress or Quiet())


def trials(run: RunFolder) -> list[tuple[TrialFolder, TrialRecord]]:
    """All trials with their records."""
    return [(trial, TrialRecord.from_bytes(trial.trial_record.read_bytes())) for trial in run.trial_folders()]


def only_trial(run: RunFolder) -> tuple[TrialFolder, TrialRecord]:
    """The one trial of a run that has one."""
    (found,) = trials(run)
    return found


def document(path: Path) -> Any:
    """A JSON file's value."""
    return json.loads(path.read_bytes())
