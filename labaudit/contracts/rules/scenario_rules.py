"""ScenarioTask: rules S1-S5. The data flow itself is examined by `scenarios.plan`, which also runs it."""

from __future__ import annotations

from labaudit.contracts.rules.finding import Findings, Json, at, error, kind_of, required_text, unknown_keys
from labaudit.contracts.rules.task_rules import check_task
from labaudit.contracts.scenarios.plan import examine_data_flow

SCENARIO_FIELDS = frozenset(["id", "name", "description", "steps", "input_map", "metadata"])
_TRANSFER_FIELDS = frozenset(["from", "to"])


def check_scenario(scenario: Json) -> Findings:
    """Every S rule on one ScenarioTask."""
    shape = [*scenario_has_its_six_fields(scenario), *steps_are_atomic_tasks_with_unique_ids(scenario)]
    yield from shape
    # The flow is only worth examining where every step has an id and every entry two texts.
    if not any(finding.rule in ("S1", "S2", "T1") for finding in shape):
        yield from references_resolve_to_earlier_steps(scenario)


def scenario_has_its_six_fields(scenario: Json) -> Findings:
    """S1: all six fields are there with their types, nothing else is."""
    yield from required_text(scenario, ("id", "name"), "S1")
    for key, kind, words in (
        ("description", str, "a string"),
        ("steps", list, "an array"),
        ("input_map", dict, "an object"),
        ("metadata", dict, "an object"),
    ):
        if not isinstance(scenario.get(key), kind):
            found = kind_of(scenario[key]) if key in scenario else "nothing"
            yield error("S1", at("$", key), f"{key} must be {words}, there is {found}")
    yield from unknown_keys(scenario, SCENARIO_FIELDS, "S1")
    input_map = scenario.get("input_map")
    if isinstance(input_map, dict):
        for step_id, entries in input_map.items():
            yield from _entries_are_transfers(entries, at("$.input_map", step_id))


def _entries_are_transfers(entries: object, path: str) -> Findings:
    if not isinstance(entries, list):
        yield error("S1", path, f"the data flow into a step is an array, there is {kind_of(entries)}")
        return
    for number, entry in enumerate(entries):
        place = f"{path}[{number}]"
        if not isinstance(entry, dict):
            yield error("S1", place, f"an entry is an object with from and to, there is {kind_of(entry)}")
            continue
        yield from required_text(entry, ("from", "to"), "S1", place)
        yield from unknown_keys(entry, _TRANSFER_FIELDS, "S1", place)


def steps_are_atomic_tasks_with_unique_ids(scenario: Json) -> Findings:
    """S2: at least one step, each an AtomicTask, no id twice."""
    steps = scenario.get("steps")
    if not isinstance(steps, list):
        return
    if not steps:
        yield error("S2", "$.steps", "a scenario has at least one step")
    seen: set[str] = set()
    for number, step in enumerate(steps):
        place = f"$.steps[{number}]"
        if not isinstance(step, dict):
            yield error("S2", place, f"a step is an atomic task, there is {kind_of(step)}")
            continue
        broken = [finding.below(place) for finding in check_task(step)]
        if broken:
            yield from broken
            rules = ", ".join(sorted({finding.rule for finding in broken}))
            yield error("S2", place, f"this step is no atomic task: it breaks {rules}")
        step_id = step.get("id")
        if isinstance(step_id, str):
            if step_id in seen:
                yield error("S2", f"{place}.id", f"the step id {step_id[:60]!r} stands twice")
            seen.add(step_id)


def references_resolve_to_earlier_steps(scenario: Json) -> Findings:
    """S3, S4, S5: what `input_map` refers to is there, above the step that asks, by a sound path."""
    _, problems = examine_data_flow(scenario)
    for problem in problems:
        yield error(problem.rule, problem.path, problem.message, problem.hint)
