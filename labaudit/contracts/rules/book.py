"""Every rule as a row: its id, what it is about, how serious it is, and one sentence. Pages show results by it."""

from __future__ import annotations

from typing import NamedTuple


class RuleRow(NamedTuple):
    """One rule of the contracts. `severity` is `error`, `warning`, or both where the rule has two parts."""

    id: str
    about: str
    severity: str
    sentence: str


BOOK: tuple[RuleRow, ...] = (
    RuleRow("J1", "json", "error", "Every number is finite and fits a double."),
    RuleRow("J2", "json", "error", "No object has a key twice."),
    RuleRow("J3", "json", "error", "Strings have no lone surrogates and nesting stays within 128 levels."),
    RuleRow("K1", "json", "error", "A record is an object whose kind can be told: task, scenario, run or score."),
    RuleRow("K2", "json", "warning", "A trial of a run has a run record."),
    RuleRow("T1", "task", "error", "id, name and type are non-empty strings, input is present, metadata is an object."),
    RuleRow("T2", "task", "error", "No other field at the top: a module's own fields go into extensions."),
    RuleRow("T3", "task", "error", "metadata has only tags, priority and timeout (milliseconds, 0 or more)."),
    RuleRow("S1", "scenario", "error", "All six fields are there and nothing else is."),
    RuleRow("S2", "scenario", "error", "Steps are atomic tasks, at least one, with unique ids."),
    RuleRow("S3", "scenario", "error", "A reference points to an earlier step only."),
    RuleRow("S4", "scenario", "error", "Every reference resolves; absent is not null."),
    RuleRow("S5", "scenario", "error", "Paths are sound, targets are inside objects, no two writers overlap."),
    RuleRow("R1", "run", "error", "The required fields are there and the record is closed."),
    RuleRow("R2", "run", "error", "Latency, tokens and cost are numbers, 0 or more; a boolean is none."),
    RuleRow("R3", "run", "error", "The trace has events once the run is not pending."),
    RuleRow("R4", "run", "error", "A run is failed exactly when it has an error."),
    RuleRow("R5", "run", "error, warning", "A scenario's failure names a declared step; an atomic one should."),
    RuleRow("R6", "run", "error", "Steps are there exactly for scenarios, unique and in order."),
    RuleRow("R7", "run", "error", "A completed run has no failed step."),
    RuleRow("R8", "run", "error", "completedAt fits the status and is not before startedAt."),
    RuleRow("R9", "run", "error", "A step summary has stepId, stepName, status, latency and a string error."),
    RuleRow("R10", "run", "error", "An error has message, step and stack only."),
    RuleRow("V1", "trace", "error, warning", "Events have timestamp, level and name; out of order is a warning."),
    RuleRow("V2", "trace", "warning", "The trace starts with started and ends with completed or failed."),
    RuleRow("C1", "score", "error", "All fields but evidence are there; the value is a number, boolean or string."),
    RuleRow("C2", "score", "error", "The target is final, global or step:<id>."),
    RuleRow("C3", "score", "error", "The run and the step that a score names exist."),
    RuleRow("C4", "score", "error", "Evidence has explanation, snippets and alignment only."),
    RuleRow("C5", "score", "warning", "An evaluator gives only metrics that it declares."),
    RuleRow("D1", "date", "error", "Dates are RFC 3339 with an offset."),
)
RULE_IDS = tuple(row.id for row in BOOK)
