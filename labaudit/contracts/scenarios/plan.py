"""A ScenarioTask to its plan: for each step, the transfers that fill its input; or the problems that forbid one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .data_flow import (
    SCENARIO_INPUT,
    DataFlowError,
    Transfer,
    overlapping,
    parse_source,
    parse_target,
    put,
    read_path,
)


class Problem(NamedTuple):
    """A broken rule, where it stands in the scenario, and what to do."""

    rule: str
    path: str
    message: str
    hint: str


class ScenarioInvalid(ValueError):
    """A scenario that cannot be run as it is written."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        first = problems[0]
        super().__init__(f"{first.rule} at {first.path}: {first.message}")
        self.problems = tuple(problems)


def plan_scenario(scenario: Mapping[str, Any]) -> list[list[Transfer]]:
    """The transfers into each step, in step order; ScenarioInvalid when the data flow breaks a rule."""
    plan, problems = examine_data_flow(scenario)
    if problems:
        raise ScenarioInvalid(problems)
    return plan


def examine_data_flow(scenario: Mapping[str, Any]) -> tuple[list[list[Transfer]], list[Problem]]:
    """The plan of a scenario whose shape is sound, and every problem of its `input_map` that is known before a run."""
    steps: Sequence[Mapping[str, Any]] = scenario["steps"]
    step_ids = [step["id"] for step in steps]
    plan: list[list[Transfer]] = [[] for _ in steps]
    problems: list[Problem] = []
    for step_id, entries in scenario["input_map"].items():
        place = f"$.input_map[{step_id[:60]!r}]"
        if step_id not in step_ids:
            hint = "declared: " + ", ".join(known[:40] for known in step_ids[:10])
            problems.append(Problem("S4", place, f"input_map names {step_id[:60]!r}, which is no step", hint))
            continue
        at = step_ids.index(step_id)
        for number, entry in enumerate(entries):
            try:
                transfer = _understand(entry, step_ids, at, scenario)
                put(steps[at]["input"], transfer.target, None)
                plan[at].append(transfer)
            except DataFlowError as error:
                problems.append(Problem(error.rule, f"{place}[{number}]", error.message, error.hint))
        clash = overlapping([transfer.target for transfer in plan[at]])
        if clash is not None:
            first, second = (".".join(("input", *target))[:60] for target in clash)
            message = f"two entries write to overlapping targets, {first!r} and {second!r}"
            problems.append(Problem("S5", place, message, "let one entry write each part of the input"))
    return plan, problems


def _understand(
    entry: Mapping[str, str], step_ids: Sequence[str], at: int, scenario: Mapping[str, Any]
) -> Transfer:
    source = parse_source(entry["from"], step_ids, at)
    if source.step is None:
        # The scenario's own input is known before the run, so its references are looked up now.
        read_path(scenario["metadata"].get(SCENARIO_INPUT, {}), source.path, entry["from"])
    return Transfer(source, parse_target(entry["to"]), (entry["from"], entry["to"]))
