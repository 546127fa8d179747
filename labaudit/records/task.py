"""Atomic and scenario tasks: the two kinds of task that a dataset may hold as contract records."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from labaudit.records.base import NULL_IS_A_VALUE, Record
from labaudit.records.fields import JsonObject, Many, NotNegative, Number, Text


class TaskMetadata(Record):
    """Tags, priority and a time limit in milliseconds."""

    tags: Many[str] | None = None
    priority: Number | None = None
    timeout: NotNegative | None = None


class AtomicTask(Record):
    """One ability, one input; what a module adds stands in `extensions`."""

    id: Text
    name: Text
    type: Text
    input: Any
    expected: Annotated[Any, NULL_IS_A_VALUE] = None
    context: JsonObject | None = None
    metadata: TaskMetadata
    extensions: JsonObject | None = None


class InputMapping(Record):
    """Where a step's input field comes from."""

    from_: Text = Field(alias="from")
    to: Text


class ScenarioTask(Record):
    """Atomic tasks in order, with the data that flows between them declared."""

    id: Text
    name: Text
    description: str
    steps: Annotated[Many[AtomicTask], Field(min_length=1)]
    input_map: dict[str, Many[InputMapping]]
    metadata: JsonObject
