"""Templates of the spec (`{task.prompt}`, `{bindings.model}`) to the texts that an agent is given.

A template that is one placeholder and finds a list of texts gives several prompts, one turn each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import cast

from labaudit.errors import BadInput

DEFAULT_PROMPT = "{task.prompt}"
ROOTS = ("task", "bindings")
MAX_PROMPTS = 1000
_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


def render_prompts(template: str | None, values: Mapping[str, object]) -> tuple[str, ...]:
    """The prompts of one trial, at least one."""
    chosen = template or DEFAULT_PROMPT
    whole = _PLACE.fullmatch(chosen)
    if whole and whole.group(1):
        found = _look_up(whole.group(1), values)
        if isinstance(found, list):
            if not found or len(found) > MAX_PROMPTS or not all(isinstance(item, str) and item for item in found):
                raise BadInput(
                    f"{whole.group(0)} is a list, but not of 1 to {MAX_PROMPTS} texts", where="runtime.harness.prompt"
                )
            return tuple(cast(list[str], found))
    return (render(chosen, values, where="runtime.harness.prompt"),)


def render(template: str, values: Mapping[str, object], *, where: str) -> str:
    """The template with every placeholder filled in; `{{` and `}}` stand for braces."""

    def fill(match: re.Match[str]) -> str:
        if match.group(0) in ("{{", "}}"):
            return match.group(0)[0]
        found = _look_up(match.group(1), values, where)
        return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, sort_keys=True)

    return _PLACE.sub(fill, template)


def _look_up(path: str, values: Mapping[str, object], where: str = "runtime.harness.prompt") -> object:
    parts = path.split(".")
    if parts[0] not in ROOTS or len(parts) < 2:
        raise BadInput(f"{{{path}}} names nothing", where=where, hint="{task.<field>} and {bindings.<name>} are known")
    found: object = values.get(parts[0])
    for number, part in enumerate(parts[1:], start=1):
        if not isinstance(found, Mapping) or part not in found:
            here = ".".join(parts[:number])
            known = ", ".join(sorted(map(str, found))[:8]) if isinstance(found, Mapping) else "no fields"
            raise BadInput(f"{{{path}}}: {here} has no {part!r}", where=where, hint=f"it has: {known}")
        found = found[part]
    return found
