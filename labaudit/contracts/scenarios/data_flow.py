"""A scenario's `input_map` to transfers of values between its steps.

    from   step:<id>.output.<field>...     a value that an earlier step gave; without a field, all of its output
           step:previous.output.<field>    the same for the step just before
           input:<field>...                a value under metadata.scenarioInput
    to     input, input.<field>...         where it goes in the step's own input

Absent is not null: a reference to something that is not there is an error, a reference to a null moves a null. What is
wrong is told by the rule it breaks (S3 earlier steps only, S4 every reference resolves, S5 paths and targets).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

PREVIOUS = "previous"
OUTPUT = "output"
INPUT = "input"
SCENARIO_INPUT = "scenarioInput"
GRAMMAR = "write step:<id>.output.<field>, step:previous.output.<field> or input:<field>"
_NO_OBJECT = "give the step an object there, or write to: input"


class DataFlowError(ValueError):
    """A reference or a target that breaks rule `rule`."""

    def __init__(self, rule: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.hint = hint


class Source(NamedTuple):
    """Where a value comes from: the output of the step at `step`, or the scenario's input when that is None."""

    step: int | None
    path: tuple[str, ...]


class Transfer(NamedTuple):
    """One entry of `input_map`, understood; `written` keeps its two texts."""

    source: Source
    target: tuple[str, ...]
    written: tuple[str, str]


def parse_source(text: str, step_ids: Sequence[str], at: int) -> Source:
    """What `text` refers to, seen from the step at index `at`."""
    if text.startswith("step:"):
        return _parse_step_source(text, step_ids, at)
    if text.startswith("input:"):
        return Source(None, _segments(text.removeprefix("input:"), text))
    raise DataFlowError("S4", f"{_short(text)} refers to nothing", GRAMMAR)


def parse_target(text: str) -> tuple[str, ...]:
    """The fields below `input` that `text` names; empty for the whole input."""
    if text == INPUT:
        return ()
    if not text.startswith(INPUT + "."):
        raise DataFlowError("S5", f"the target {_short(text)} does not start with input", "write input.<field>")
    return _segments(text.removeprefix(INPUT + "."), text)


def read_path(value: Any, path: Sequence[str], named: str) -> Any:
    """The value at `path`; a number picks an item of an array. DataFlowError when it is absent."""
    for segment in path:
        if isinstance(value, Mapping) and segment in value:
            value = value[segment]
        elif isinstance(value, list) and _is_index(segment) and int(segment) < len(value):
            value = value[int(segment)]
        else:
            raise DataFlowError(
                "S4", f"{_short(named)} does not resolve: there is no {segment[:40]!r}", "absent is not null"
            )
    return value


def put(step_input: Any, target: Sequence[str], value: Any) -> Any:
    """The input with `value` at `target`; missing objects on the way are made, other types are not replaced.

    Only the objects on the way are copied: the given input stays as it was.
    """
    if not target:
        return value
    if not isinstance(step_input, Mapping):
        raise DataFlowError("S5", f"cannot set {target[0][:40]!r} inside an input that is no object", _NO_OBJECT)
    result = dict(step_input)
    inside = result
    for depth, segment in enumerate(target[:-1], start=1):
        inner = inside.get(segment, {})
        if not isinstance(inner, Mapping):
            place = ".".join((INPUT, *target[:depth]))
            message = f"cannot set {target[depth][:40]!r} inside {_short(place)}, which is no object"
            raise DataFlowError("S5", message, _NO_OBJECT)
        inside[segment] = inside = dict(inner)
    inside[target[-1]] = value
    return result


def overlapping(targets: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Two targets of which one is or contains the other, else None."""
    ordered = sorted(targets)
    # Sorted, everything below a target stands right behind it, so neighbours are enough.
    for earlier, later in pairwise(ordered):
        if later[: len(earlier)] == earlier:
            return earlier, later
    return None


def _parse_step_source(text: str, step_ids: Sequence[str], at: int) -> Source:
    body = text.removeprefix("step:")
    found: dict[tuple[int, str], None] = {}
    for index, step_id in enumerate(step_ids):
        rest = _after(body, step_id)
        if rest is not None:
            found[index, rest] = None
    rest = _after(body, PREVIOUS)
    if rest is not None:
        found[at - 1, rest] = None
    if len(found) > 1:
        raise DataFlowError(
            "S4", f"{_short(text)} can mean more than one step", "rename a step so that exactly one id fits"
        )
    if not found:
        raise DataFlowError("S4", f"{_short(text)} names no declared step's output", _hint(body, step_ids))
    ((index, rest),) = found
    if index < 0 or index >= at:
        raise DataFlowError("S3", f"{_short(text)} does not point to an earlier step", "refer to a step above this one")
    return Source(index, _segments(rest, text) if rest else ())


def _after(body: str, step_id: str) -> str | None:
    """What follows `<id>.output.` in `body`: empty for the whole output, None when `body` does not fit."""
    if body in (step_id, f"{step_id}.{OUTPUT}"):
        return ""
    start = f"{step_id}.{OUTPUT}."
    if body.startswith(start):
        # An empty field is kept apart from no field, so that `step:a.output.` is refused as a path.
        return body.removeprefix(start) or "."
    return None


def _hint(body: str, step_ids: Sequence[str]) -> str:
    for step_id in (*step_ids, PREVIOUS):
        if body.startswith(f"{step_id}:"):
            return f"the colon form is not used: write step:{step_id}.{OUTPUT}.<field>"
        if body.startswith(f"{step_id}."):
            return f"write step:{step_id}.{OUTPUT}.<field>"
    return "declared: " + ", ".join(step_id[:40] for step_id in step_ids[:10])


def _segments(path: str, named: str) -> tuple[str, ...]:
    parts = tuple(path.split("."))
    if not all(parts):
        raise DataFlowError("S5", f"{_short(named)} has an empty segment", "put one dot between two names")
    if "__proto__" in parts:
        raise DataFlowError("S5", f"{_short(named)} has the segment __proto__", "give the field another name")
    return parts


def _is_index(segment: str) -> bool:
    # Ten digits are more than any list here can have, and keep int() cheap.
    return segment.isascii() and segment.isdigit() and len(segment) <= 10 and (segment == "0" or segment[0] != "0")


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
