"""A YAML file to plain values plus the line that each of them stands on.

Booleans are `true` and `false` only (YAML 1.1 would read `off` as false and `sbom: off` would lose its meaning), times
stay text, anchors and duplicate keys are errors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from labaudit.errors import BadInput
from labaudit.store.atomic import read_bytes

Path_ = tuple[str | int, ...]
MAX_BYTES = 4 << 20


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
    return located


def _value(loader: _Loader, node: yaml.Node, path: Path_, located: Located) -> object:
    located.lines[path] = node.start_mark.line + 1
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
    return value


def _explain(error: yaml.MarkedYAMLError, text: str, path: Path) -> BadInput:
    mark = error.problem_mark or error.context_mark
    line = mark.line if mark else 0
    lines = text.split("\n")
    source = lines[line] if line < len(lines) else ""
    where = f"{path}:{line + 1}"
    if "\t" in source[: len(source) - len(source.lstrip())] or (error.problem and "'\\t'" in error.problem):
        return BadInput("is indented with a tab", where=where, hint="YAML wants spaces")
    return BadInput(f"is no YAML: {error.problem or error.context}", where=where)
