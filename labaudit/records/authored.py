"""What the parts of experiment.yaml share: strict and frozen, with defaults that carry their reasons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python


class Authored(BaseModel):
    """A block of experiment.yaml as its author wrote it; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class FilledDefault(NamedTuple):
    """A value that the author did not write, and why it is what it is."""

    path: str
    value: Any
    reason: str

    def as_json(self) -> dict[str, Any]:
        """The line of `defaults` in the resolved experiment."""
        return {"path": self.path, "value": self.value, "reason": self.reason}


def filled_defaults(block: Authored, prefix: str = "") -> Iterator[FilledDefault]:
    """Every leaf value below `block` that was filled in, in the order of the fields; empty ones are left out."""
    for name, field in type(block).model_fields.items():
        path = f"{prefix}.{name}" if prefix else name
        value = getattr(block, name)
        if isinstance(value, Authored):
            yield from filled_defaults(value, path)
        elif name in block.model_fields_set:
            yield from _inside_a_list(value, path)
        elif value is not None:
            yield FilledDefault(path, to_jsonable_python(value), _reason(field))


def _inside_a_list(value: object, path: str) -> Iterator[FilledDefault]:
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            if isinstance(item, Authored):
                yield from filled_defaults(item, f"{path}[{index}]")


def _reason(field: FieldInfo) -> str:
    return field.description or "the documented default"
