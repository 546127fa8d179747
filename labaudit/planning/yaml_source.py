"""A YAML file to plain values plus the line that each of them stands on.

Booleans are `true` and `false` only (YAML 1.1 would read `off` as false and `sbom: off` would lose its meaning), times
stay text, duplicate keys are errors. Aliases are unfolded up to a bound, so that a small file stays a small value.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from labaudit.core.canonical import MAX_SAFE_INTEGER
from labaudit.errors import BadInput, LabauditError
from labaudit.store.atomic import read_bytes

Path_ = tuple[str | int, ...]
MAX_BYTES = 4 << 20
_PARTS = re.compile(r"[^.\[\]]+")
MAX_VALUES, MAX_DEPTH = 200_000, 100


@dataclass
class Located:
    """A document's value and where its parts stand."""

    file: str
    value: object
    lines: dict[Path_, int] = field(default_factory=dict)

    def where(self, path: Path_) -> str:
        """`file:line` of the part at `path`, or of its nearest parent that is there."""
        while path and path not in self.lines:
            path = path[:-1]
        line = self.lines.get(path)
        return f"{self.file}:{line}" if line else self.file

    def at_line(self, error: LabauditError) -> LabauditError:
        """The same error with file and line in place of a dotted path such as `runtime.network.allowed_hosts[0]`."""
        path: Path_ = tuple(int(part) if part.isdigit() else part for part in _PARTS.findall(error.where))
        return type(error)(f"{error.where}: {error.what}", where=self.where(path), hint=error.hint)


class _Loader(yaml.SafeLoader):
    """SafeLoader with the scalars of YAML 1.2's core schema."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"^(?:true|false|True|False|TRUE|FALSE)$", "tTfF"),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789"),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
    ("null", r"^(?:~|null|Null|NULL|)$", "~nN\0"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))
_Loader.yaml_implicit_resolvers.setdefault("", []).append(("tag:yaml.org,2002:null", re.compile(r"^$")))


def load_yaml(path: Path) -> Located:
    """The file's one document, with lines; BadInput names the place of any error."""
    data = read_bytes(path, max_bytes=MAX_BYTES)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"is not UTF-8 at byte {error.start}", where=str(path)) from error
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        located = Located(str(path), None)
        located.value = None if node is None else _value(loader, node, (), located)
    except yaml.MarkedYAMLError as error:
        raise _explain(error, text, path) from error
    except yaml.YAMLError as error:
        raise BadInput(f"is no YAML: {error}", where=str(path)) from error
    except RecursionError as error:
        raise BadInput(f"is nested deeper than {MAX_DEPTH} levels", where=str(path)) from error
    return located


def _value(loader: _Loader, node: yaml.Node, path: Path_, located: Located) -> object:
    located.lines[path] = node.start_mark.line + 1
    if len(located.lines) > MAX_VALUES:
        raise BadInput(f"unfolds to more than {MAX_VALUES} values", where=located.where(path), hint="use fewer aliases")
    if len(path) > MAX_DEPTH:
        hint = "an alias that stands inside what it names never ends"
        raise BadInput(f"is nested deeper than {MAX_DEPTH} levels", where=located.where(path), hint=hint)
    if isinstance(node, yaml.MappingNode):
        result: dict[str, object] = {}
        for key_node, value_node in node.value:
            place = f"{located.file}:{key_node.start_mark.line + 1}"
            key = loader.construct_object(key_node)
            if not isinstance(key, str):
                raise BadInput(f"key {key!r} is no text", where=place, hint="put it in quotes")
            if key in result:
                raise BadInput(f"key {key!r} stands twice", where=place, hint="keep one of them")
            result[key] = _value(loader, value_node, (*path, key), located)
            located.lines[(*path, key)] = key_node.start_mark.line + 1
        return result
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, item, (*path, index), located) for index, item in enumerate(node.value)]
    value: object = loader.construct_object(node)
    if isinstance(value, int | float) and not (math.isfinite(value) and abs(value) <= MAX_SAFE_INTEGER):
        _check_number(value, located.where(path))
    return value


def _check_number(value: float, where: str) -> None:
    if isinstance(value, int):
        hint = "JSON readers would round it; put it in quotes if it is a name"
        raise BadInput(f"the integer {value} is beyond 2^53-1", where=where, hint=hint)
    if not math.isfinite(value):
        raise BadInput("the number is too large to be one", where=where)


def _explain(error: yaml.MarkedYAMLError, text: str, path: Path) -> BadInput:
    mark = error.problem_mark or error.context_mark
    line = mark.line if mark else 0
    lines = text.split("\n")
    source = lines[line] if line < len(lines) else ""
    where = f"{path}:{line + 1}"
    if "\t" in source[: len(source) - len(source.lstrip())] or (error.problem and "'\\t'" in error.problem):
        return BadInput("is indented with a tab", where=where, hint="YAML wants spaces")
    return BadInput(f"is no YAML: {error.problem or error.context}", where=where)
