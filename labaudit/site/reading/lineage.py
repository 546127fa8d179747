"""Runs of one site to their relatives: what a run replays or forks, and which runs on the site replay or fork it.

A child's own sealed folder names its parent by digest, so that half is evidence and always shown. A sealed parent
cannot name its children; they are shown where they stand on the same site, because there their own files say so. The
lab's index of children is no part of any run and enters no page: a rebuild from the runs alone gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from labaudit.site.drawing.places import Places
from labaudit.site.reading.published_run import PublishedRun

Json = dict[str, Any]
LISTED = 100
_KINDS = {"replay": "a replay", "fork": "a fork"}
_REPLAYED = {
    "boundaries": "every call was answered from the record",
    "steps": "it ran again, live, and was compared step by step",
    "outputs": "it ran again, live, and was compared by its outputs and files",
}


@dataclass
class Family:
    """The relatives of one run; addresses lead from the site's root."""

    parent: Json | None = None
    children: list[Json] = field(default_factory=list)

    def of_trial(self, trial_id: str) -> list[Json]:
        """The replays and forks of one trial."""
        return [child for child in self.children if child["parent_trial"] == trial_id]


def families(runs: Sequence[PublishedRun]) -> dict[str, Family]:
    """The family of each run, by run id."""
    found = {run.run_id: Family() for run in runs}
    known = {run.run_id: run for run in runs}
    for run in runs:
        told = _told(run.lineage)
        if told is None:
            continue
        other = known.get(told["run_id"])
        same = other is not None and told["manifest_digest"] == f"sha256:{other.manifest_sha256}"
        entry = {**told, "divergence": _divergence(run.divergence), "state": _state(other, same)}
        found[run.run_id].parent = {**entry, **_addresses(other if same else None, told["trial_id"], len(runs))}
        if other is not None and same:
            place = _addresses(run, "", len(runs))
            child = {**entry, **place, "run_id": run.run_id, "parent_trial": told["trial_id"]}
            found[other.run_id].children.append(child)
    for family in found.values():
        family.children.sort(key=lambda child: (child["parent_trial"], child["run_id"]))
    return found


def _state(other: PublishedRun | None, same: bool) -> str:
    """Whether the parent that is named stands on this site: absent, the same by digest, or another of that name."""
    return "absent" if other is None else "same" if same else "another"


def _addresses(run: PublishedRun | None, trial_id: str, runs: int) -> Json:
    if run is None:
        return {"href": "", "trial_href": ""}
    root = f"runs/{run.run_id}/" if runs > 1 else ""
    row = next((row for row in run.rows if row["trial_id"] == trial_id), None)
    return {"href": f"{root}index.html", "trial_href": root + Places(run.rows).trial(row).href if row else ""}


def _told(document: Json | None) -> Json | None:
    """What `lineage.json` says, in the shape that pages print; None for one of another shape."""
    parent = (document or {}).get("parent")
    if document is None or not isinstance(parent, dict) or not isinstance(parent.get("run_id"), str):
        return None
    changed = document.get("set")
    pairs = sorted(changed.items()) if isinstance(changed, dict) else []
    return {
        "kind": str(document.get("kind")),
        "called": _KINDS.get(str(document.get("kind")), "a relative of an unknown kind"),
        "run_id": parent["run_id"],
        "trial_id": str(parent.get("trial_id")),
        "manifest_digest": str(parent.get("manifest_digest")),
        "record_digest": str(parent.get("trial_record_digest") or "not stated"),
        "selector": str(document["selector"]) if document.get("selector") else "",
        "set": [(str(name), _plain(value)) for name, value in pairs],
        "way": _way(document),
    }


def _way(document: Json) -> str:
    """How the child came about, in words."""
    mode = str(document.get("mode") or "not stated")
    if document.get("kind") != "fork":
        return _REPLAYED.get(mode, mode)
    if mode == "boundaries":
        return "the steps before it were answered from the record"
    label = document.get("checkpoint")
    return f"from checkpoint {label}" if label else "the steps before it ran again"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _divergence(document: Json | None) -> Json | None:
    """What `divergence.json` counts and lists; None when there is none that can be read."""
    if document is None or not all(isinstance(document.get(name), int) for name in ("compared", "total")):
        return None
    listed = document.get("divergences")
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    names = ("what", "step_index", "expected", "observed", "sentence")
    shown = [{name: "" if row.get(name) is None else str(row[name]) for name in names} for row in rows[:LISTED]]
    return {"compared": document["compared"], "total": document["total"], "rows": shown}
