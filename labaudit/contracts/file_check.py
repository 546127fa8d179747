"""Files, streams and run folders to a report on every record in them.

A file holds one record, an array of records, or one record per line. A run folder gives its run and score records, the
tasks that its trials were given, and the metrics that its evaluators declare.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from labaudit.contracts.json_reading import Reading, Unreadable, read_json
from labaudit.contracts.module_registry import declared_metrics, installed_modules
from labaudit.contracts.record_check import Kind, RecordCheck
from labaudit.contracts.report import ENOUGH, CheckReport
from labaudit.contracts.rules.finding import warning
from labaudit.contracts.scenarios.executor import is_scenario
from labaudit.contracts.trial_mapping import ACP_METRICS, COST_METRIC, FRAMEWORK_EVALUATOR, SELF_REPORTED
from labaudit.errors import BadInput
from labaudit.store import atomic
from labaudit.store.run_folder import RunFolder, TrialFolder

LINES = (".jsonl", ".ndjson")
_RULES = {"number": "J1", "text": "J3", "depth": "J3"}


def check_paths(
    paths: Iterable[Path], *, kind: Kind | None = None, keep: int = 1000, standard_input: bytes | None = None
) -> CheckReport:
    """One report over files, folders and what came by standard input.

    Files are taken together: a score may refer to a run in another file.
    """
    report = CheckReport(keep=keep)
    declared = declared_metrics(installed_modules())
    together = RecordCheck(kind=kind, declared=declared, keep=keep, enough=ENOUGH)
    for path in paths:
        if is_run_folder(path):
            report.merge(check_run_folder(RunFolder(path), keep=keep))
        elif path.is_dir():
            add_folder(together, path)
        else:
            add_file(together, path, str(path))
    if standard_input is not None:
        add_bytes(together, standard_input, "standard input")
    report.merge(together.finish())
    return report


def check_run_folder(run: RunFolder, *, keep: int = 1000) -> CheckReport:
    """The report on one run: its records, its tasks, and the rules between them."""
    declared = {**declared_metrics(installed_modules()), **metrics_declared_by(run)}
    check = RecordCheck(declared=declared, keep=keep, enough=ENOUGH)
    add_run_folder(check, run)
    return check.finish()


def is_run_folder(path: Path) -> bool:
    """True for a folder that has trials in it."""
    return (path / "trials").is_dir()


def add_file(check: RecordCheck, path: Path, source: str, *, kind: Kind | None = None) -> None:
    """The records of one file."""
    if check.stops_at(source):
        return
    if path.suffix in LINES:
        _require_file(path)
        with path.open("rb") as stream:
            add_lines(check, stream, source, kind=kind)
    else:
        add_bytes(check, atomic.read_bytes(path), source, kind=kind)


def add_bytes(check: RecordCheck, data: bytes, source: str, *, kind: Kind | None = None) -> None:
    """One record, an array of records, or (when the first line is a value of its own) one record per line."""
    try:
        reading = read_json(data)
    except Unreadable as error:
        if error.cause == "syntax" and _looks_like_lines(data):
            add_lines(check, data.split(b"\n"), source, kind=kind)
        else:
            _refuse(check, error, source)
        return
    if not isinstance(reading.value, list):
        _add(check, reading, source, kind)
        return
    check.duplicates(source, reading.duplicate_keys)
    for index, item in enumerate(reading.value):
        place = f"{source}[{index}]"
        if check.stops_at(place):
            return
        check.add(item, place, kind=kind)


def add_lines(check: RecordCheck, lines: Iterable[bytes], source: str, *, kind: Kind | None = None) -> None:
    """One record per line; empty lines are no records."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            place = f"{source}:{number}"
            if check.stops_at(place):
                return
            try:
                _add(check, read_json(line), place, kind)
            except Unreadable as error:
                _refuse(check, error, place)


def add_folder(check: RecordCheck, folder: Path) -> None:
    """Every `*.json` and JSON Lines file at or below a folder; BadInput when there is none."""
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".json", *LINES) and path.is_file() and not path.is_symlink()
    ]
    if not files:
        raise BadInput("there are no records in this folder", where=str(folder), hint="records are JSON files")
    for path in files:
        add_file(check, path, str(path))


def add_run_folder(check: RecordCheck, run: RunFolder) -> None:
    """The records of every trial of a run; a trial without a run record is told. BadInput when there is no trial."""
    trials = list(run.trial_folders())
    if not trials:
        raise BadInput("there are no trials in this run", where=str(run.path), hint="a run folder has trials/<trial>/")
    for trial in trials:
        name = f"{run.path.resolve().name}/trials/{trial.trial_id}"
        _add_task(check, trial, name)
        if trial.run_record.is_file():
            add_file(check, trial.run_record, f"{name}/{trial.run_record.name}", kind="run")
        else:
            check.tell(name, warning("K2", "$", "this trial has no run record", "a lost trial may have none"))
        if trial.score_records.is_file():
            add_file(check, trial.score_records, f"{name}/{trial.score_records.name}", kind="score")


def metrics_declared_by(run: RunFolder) -> dict[str, frozenset[str]]:
    """Evaluator id to metrics, from the resolved experiment of a run; empty when it cannot be read."""
    resolved = _object_in(run.resolved)
    harness = _part(_part(resolved, "runtime"), "harness")
    of_the_bridge = ACP_METRICS if harness.get("mode") == "acp" else ()
    declared: dict[str, set[str]] = {SELF_REPORTED: {COST_METRIC, *of_the_bridge}}
    for evaluator in _objects(resolved.get("evaluators")):
        declared.setdefault(str(evaluator.get("id")), set()).add(str(evaluator.get("metric")))
    for metric in _objects(resolved.get("metrics")):
        source, name = str(metric.get("source", "")), str(metric.get("name"))
        if source == "harness":
            declared[SELF_REPORTED].add(name)
        elif source == "framework":
            declared.setdefault(FRAMEWORK_EVALUATOR, set()).add(name)
        elif source.startswith("evaluator:"):
            declared.setdefault(source.removeprefix("evaluator:"), set()).add(name)
    return {evaluator: frozenset(metrics) for evaluator, metrics in declared.items()} if resolved else {}


def _add_task(check: RecordCheck, trial: TrialFolder, name: str) -> None:
    """A trial's task: scenarios and atomic tasks by their rules; a benchmark's own shape is its own business."""
    trial_input = _object_in(trial.trial_input)
    task, ids = trial_input.get("task"), trial_input.get("ids")
    if not isinstance(task, dict) or not isinstance(ids, dict):
        return
    scenario = is_scenario(task)
    if scenario or task.keys() >= {"type", "input", "metadata"}:
        check.add(task, f"{name}/{trial.trial_input.name}#task", kind="scenario" if scenario else "task")
    steps = task.get("steps") if scenario else None
    step_ids = tuple(str(step.get("id")) for step in _objects(steps))
    check.task_declares(str(ids.get("task_id")), "scenario" if scenario else "atomic", step_ids)


def _add(check: RecordCheck, reading: Reading, source: str, kind: Kind | None) -> None:
    check.duplicates(source, reading.duplicate_keys)
    check.add(reading.value, source, kind=kind)


def _refuse(check: RecordCheck, error: Unreadable, source: str) -> None:
    if error.is_json:
        check.refuse(source, _RULES[error.cause], f"the record {error.reason}")
    else:
        check.not_json(source, error.reason)


def _looks_like_lines(data: bytes) -> bool:
    first, _, rest = data.partition(b"\n")
    if not rest.strip():
        return False
    try:
        read_json(first)
    except Unreadable as error:
        return error.is_json
    return True


def _object_in(path: Path) -> Mapping[str, object]:
    if not path.is_file():
        return {}
    try:
        value = read_json(atomic.read_bytes(path)).value
    except Unreadable:
        return {}
    return value if isinstance(value, dict) else {}


def _part(record: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> Iterator[Mapping[str, object]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise BadInput("there is no such file", where=str(path))
