"""A run to its relatives: what it replays or forks, and what replays or forks it.

A child names its parent in its own sealed folder. A sealed parent is never written to, so its children are found in
the lab's `lineage.jsonl`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from labaudit.core.strict_json import parse_object
from labaudit.runner.linked_run import LINEAGE
from labaudit.store import atomic
from labaudit.store.event_log import read_lines
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder

_SHOWN = ("kind", "selector", "set")


@dataclass(frozen=True)
class Family:
    """The relatives of one run, oldest first; each says kind, selector, changed bindings and the other run."""

    parent: dict[str, Any] | None
    children: tuple[dict[str, Any], ...]

    def lines(self) -> list[str]:
        """For people."""
        found = []
        if self.parent is not None:
            found.append(f"{self.parent['kind']} of {_place(self.parent)}{_change(self.parent)}")
        for child in self.children:
            done = "replayed" if child["kind"] == "replay" else "forked"
            found.append(f"{child['trial_id']} {done} as run {child['run_id']}{_change(child)}")
        return found


def family_of(lab: LabFolder, run: RunFolder) -> Family:
    """The relatives that the run and its lab name; BadInput where either list cannot be read."""
    parent = None
    path = run.path / LINEAGE
    if path.is_file():
        said: dict[str, Any] = parse_object(atomic.read_bytes(path), where=str(path))
        parent = _row(said, said["parent"])
    children = []
    if lab.lineage.is_file():
        for line in read_lines(lab.lineage):
            told: dict[str, Any] = parse_object(line, where=str(lab.lineage))
            if told["parent"]["run_id"] == run.run_id:
                other = {"run_id": told["child"]["run_id"], "trial_id": told["parent"]["trial_id"]}
                children.append(_row(told, other))
    return Family(parent, tuple(children))


def _row(said: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {**{key: said.get(key) for key in _SHOWN}, **other}


def _place(row: dict[str, Any]) -> str:
    return f"{row['run_id']}/{row['trial_id']}"


def _change(row: dict[str, Any]) -> str:
    if not row["selector"]:
        return ""
    return f" at {row['selector']} with {', '.join(f'{name}={value}' for name, value in row['set'].items())}"
