"""Values that should be Task, Scenario, Run or Score records to findings, with the rules across records at the end.

    check = RecordCheck()
    check.add(value, "runs.jsonl:12")          as often as there are records
    report = check.finish()

Rules across records are only asked of what is there: a score whose run was not given with it has no finding, a score
among runs that lack its own has one (C3).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, NamedTuple, get_args

from labaudit.contracts.report import CheckReport
from labaudit.contracts.rules.finding import Findings, Json, RuleFinding, error
from labaudit.contracts.rules.run_rules import check_run
from labaudit.contracts.rules.scenario_rules import check_scenario
from labaudit.contracts.rules.score_rules import check_score, metric_is_declared, score_refers_to_a_known_run_and_step
from labaudit.contracts.rules.task_rules import TASK_FIELDS, check_task

Kind = Literal["task", "scenario", "run", "score"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CHECKS: dict[Kind, Callable[[Json], Findings]] = {
    "task": check_task,
    "scenario": check_scenario,
    "run": check_run,
    "score": check_score,
}
# Keys that no other kind has; a record is what most of its telling keys say.
_TELLING: dict[Kind, frozenset[str]] = {
    "score": frozenset(["runId", "metric", "value", "target", "evaluatorId", "evidence", "createdAt"]),
    "run": frozenset(["taskId", "taskType", "status", "metrics", "trace", "startedAt", "completedAt", "provenance"]),
    "scenario": frozenset(["description", "input_map"]),
    "task": TASK_FIELDS - {"id", "name", "metadata"},
}


def kind_of_record(value: Json) -> Kind | None:
    """The kind that most of the record's telling keys belong to, or None when it has none of them."""
    counts = {kind: len(value.keys() & keys) for kind, keys in _TELLING.items()}
    if "steps" in value and not counts["run"]:
        counts["scenario"] += 1
    best = max(counts, key=lambda kind: counts[kind])
    return best if counts[best] else None


class _Reference(NamedTuple):
    """What a score says about its run, kept until every run is known."""

    source: str
    score: dict[str, object]


class RecordCheck:
    """Collects records and what is wrong with them."""

    def __init__(
        self,
        *,
        kind: Kind | None = None,
        declared: Mapping[str, Collection[str]] | None = None,
        keep: int = 1000,
        enough: int | None = None,
    ) -> None:
        self._kind = kind
        self._declared = declared or {}
        self._report = CheckReport(keep=keep, enough=enough)
        self._runs: dict[str, frozenset[str]] = {}
        self._tasks: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._references: list[_Reference] = []
        self._executed: list[tuple[str, dict[str, Any]]] = []

    def add(self, value: object, source: str, *, kind: Kind | None = None) -> None:
        """One record; `source` says where it stands."""
        kind = kind or self._kind
        if not isinstance(value, dict):
            self._report.count("unknown")
            self._report.note(source, error("K1", "$", "a record is a JSON object", "give one record, or an array"))
            return
        kind = kind or kind_of_record(value)
        self._report.count(kind or "unknown")
        if kind is None:
            hint = "say --kind task, scenario, run or score"
            self._report.note(source, error("K1", "$", "this is no task, scenario, run or score record", hint))
            return
        self._report.note_all(source, CHECKS[kind](value))
        self._remember(kind, value, source)

    def duplicates(self, source: str, keys: tuple[str, ...]) -> None:
        """Keys that stood twice in one object of the document at `source`."""
        if keys:
            names = ", ".join(key[:60] for key in keys[:10])
            hint = "two readers may see two records; keep one value"
            self._report.note(source, error("J2", "$", f"keys stand twice in one object: {names}", hint))

    def refuse(self, source: str, rule: str, message: str) -> None:
        """A record that is JSON but cannot be held as a value."""
        self._report.count("unknown")
        self._report.note(source, error(rule, "$", message))

    def not_json(self, source: str, message: str) -> None:
        """Bytes that are no JSON."""
        self._report.not_json(source, message)

    def stops_at(self, source: str) -> bool:
        """True when so much is wrong already that `source` and what follows need not be looked at; that is told."""
        if self._report.full:
            self._report.stopped_at = self._report.stopped_at or source
        return self._report.full

    def tell(self, source: str, finding: RuleFinding) -> None:
        """A finding that no single record gives."""
        self._report.note(source, finding)

    def task_declares(self, task_id: str, task_type: str, step_ids: tuple[str, ...]) -> None:
        """A task that runs may be compared with, known from elsewhere than its own record."""
        self._tasks[task_id] = (task_type, step_ids)

    def finish(self) -> CheckReport:
        """The report, after the rules across records; those need all records, so a check that stopped asks none."""
        if self._report.stopped_at is not None:
            return self._report
        if self._runs:
            for source, score in self._references:
                self._report.note_all(source, score_refers_to_a_known_run_and_step(score, self._runs))
        for source, run in self._executed:
            declared = self._tasks.get(run["taskId"])
            if declared is not None:
                self._report.note_all(source, run_follows_its_task(run, *declared))
        return self._report

    def _remember(self, kind: Kind, value: dict[str, Any], source: str) -> None:
        """Keeps the few fields that rules across records need, not the record."""
        if kind == "score":
            self._report.note_all(source, metric_is_declared(value, self._declared))
            self._references.append(
                _Reference(source, {"runId": value.get("runId"), "target": value.get("target")})
            )
        elif kind == "run":
            steps = _ids(value.get("steps"), "stepId")
            if isinstance(value.get("id"), str):
                self._runs[value["id"]] = frozenset(steps)
            if isinstance(value.get("taskId"), str):
                brief = {key: value.get(key) for key in ("taskId", "taskType", "status")}
                self._executed.append((source, {**brief, "steps": steps}))
        elif isinstance(value.get("id"), str):
            steps = _ids(value.get("steps"), "id") if kind == "scenario" else ()
            self._tasks[value["id"]] = ("scenario" if kind == "scenario" else "atomic", steps)


def run_follows_its_task(run: Json, task_type: str, declared: tuple[str, ...]) -> Findings:
    """R6 across records: a scenario's run lists the declared steps in their order, all of them once it has ended."""
    if run["taskType"] != task_type:
        yield error("R6", "$.taskType", f"the run says {run['taskType']!r}, its task is {task_type}")
        return
    steps = run["steps"]
    ended = run["status"] in ("completed", "failed")
    if task_type == "scenario" and steps != (declared if ended else declared[: len(steps)]):
        yield error("R6", "$.steps", "the steps are not those that the scenario declares, in its order")


def _ids(steps: object, key: str) -> tuple[str, ...]:
    if not isinstance(steps, list):
        return ()
    return tuple(step[key] for step in steps if isinstance(step, dict) and isinstance(step.get(key), str))
