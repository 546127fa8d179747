"""One arm of a run to its page: forest plot, differences by task, corrections, bounds, exemplars, suspects."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import orjson

from labaudit.site.drawing import charts
from labaudit.site.drawing.places import variant_page
from labaudit.site.pages.effects import effect_rows, forest_plot
from labaudit.site.pages.overview import missing_by_arm, with_links
from labaudit.site.pages.run_pages import RunSite

Json = dict[str, Any]
# Beyond this many tasks a strip of marks shows nothing; the file has them all.
LISTED_TASKS = 200
GRID_CELLS = 800
LABELLED_TASKS = 90
ESTIMANDS = {
    "tasks_like_these": "how it would be for other tasks of the kind",
    "this_task_set": "how it is for exactly these tasks",
}
SIGNS = {"success": "✓", "failure": "✗", "error": "!", "missing": "?"}


def write_variants(site: RunSite) -> None:
    """`variants/<v>.html` for each arm."""
    run = site.run
    rows = effect_rows(run)
    arms = {arm["variant"]: arm["counts"] for arm in missing_by_arm(run)}
    bindings = {str(item.get("id")): item.get("bindings") or {} for item in run.resolved.get("variants") or []}
    hrefs = {row["trial_id"]: site.places.trial(row).href for row in run.rows}
    differences = _differences(site)
    base = bindings.get(run.baseline, {})
    for name in run.variants:
        mine = [row for row in rows if row["variant"] == name]
        site.page(
            variant_page(name),
            "variant.html",
            variant=name,
            is_baseline=name == run.baseline,
            bindings=_bindings(bindings.get(name, {}), base),
            effects=[_effect(row, differences, hrefs) for row in mine],
            forests=_forests(mine),
            counts=arms[name],
            grid=_grid(site, name),
            exemplars=_exemplars(site, name, hrefs),
            suspects=_suspects(site, name),
            has_suspects=run.suspects is not None,
            summary=_summary(site, name),
        )


def _bindings(own: Json, base: Json) -> list[Json]:
    return [
        {
            "name": name,
            "value": _plain(own.get(name)) if name in own else "not set",
            "base": _plain(base.get(name)) if name in base else "not set",
            "differs": own.get(name) != base.get(name) or (name in own) != (name in base),
        }
        for name in sorted({*own, *base})
    ]


def _plain(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _forests(rows: list[Json]) -> list[Json]:
    """One plot per kind of effect: different scales never share an axis."""
    found = []
    for kind in dict.fromkeys(row["effect"] for row in rows):
        same = [row for row in rows if row["effect"] == kind]
        plot = forest_plot(same, label="metric", root="../")
        if plot:
            found.append({"plot": plot, "title": same[0]["unit"]})
    return found


def _effect(row: Json, differences: dict[tuple[str, str], list[Json]], hrefs: dict[str, str]) -> Json:
    tasks = differences.get((row["variant"], row["metric"]), [])
    for task in tasks:
        task["href"] = hrefs.get(task["trial"], "")
    return {
        **row,
        "strip": charts.strip(tasks),
        "tasks": tasks[:LISTED_TASKS],
        "task_count": len(tasks),
        "pass_k": _pass_k(row),
        "other_estimands": _other_estimands(row),
    }


def _pass_k(row: Json) -> Json:
    """pass@k and pass^k of both arms for every k that the replicates allow, and why there is no higher one."""
    arms = row.get("arms") or {}
    mine, base = ((arms.get(name) or {}).get("pass_k") or [] for name in ("variant", "baseline"))
    others = {item.get("k"): item for item in base if isinstance(item, dict)}
    rows = [
        {
            "k": item.get("k"),
            "at": item.get("pass_at_k"),
            "hat": item.get("pass_hat_k"),
            "base_at": others.get(item.get("k"), {}).get("pass_at_k"),
            "base_hat": others.get(item.get("k"), {}).get("pass_hat_k"),
            "reason": item.get("reason") or others.get(item.get("k"), {}).get("reason"),
        }
        for item in mine
        if isinstance(item, dict)
    ]
    known = [item for item in rows if item["at"] is not None or item["base_at"] is not None]
    return {"rows": known, "reason": next((item["reason"] for item in rows if item not in known), None)}


def _other_estimands(row: Json) -> list[Json]:
    """The interval under the estimand that the plan did not choose."""
    found = []
    for name, item in sorted((row.get("estimands") or {}).items()):
        interval = (item or {}).get("interval") or {}
        if name != row.get("estimand") and interval.get("low") is not None:
            asks = ESTIMANDS.get(name, "one that this version does not know")
            found.append({"name": name, "asks": asks, "low": interval.get("low"), "high": interval.get("high")})
    return found


def _suspects(site: RunSite, name: str) -> list[Json]:
    """All associations that were looked at for one arm: flagged first, then those that could not be told."""
    rank = {"flagged": 0, "insufficient_evidence": 1}
    mine = [item for item in (site.run.suspects or {}).get("suspects") or [] if item.get("variant") == name]
    return sorted(mine, key=lambda item: rank.get(str(item.get("status")), 2))


def _differences(site: RunSite) -> dict[tuple[str, str], list[Json]]:
    """Task differences by variant and metric, from `paired_diffs.jsonl`: mean over the replicates that were paired."""
    path = site.run.folder.paired_diffs
    if not path.is_file():
        return {}
    sums: dict[tuple[str, str], dict[str, list[Any]]] = defaultdict(dict)
    with path.open("rb") as stream:
        for line in stream:
            try:
                item = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if not isinstance(item, dict) or not isinstance(item.get("difference"), int | float):
                continue
            key = (str(item.get("variant")), str(item.get("metric")))
            entry = sums[key].setdefault(str(item.get("task_id")), [0.0, 0, item.get("variant_trial")])
            entry[0] += item["difference"]
            entry[1] += 1
    return {
        key: [
            {"task": task, "label": task, "difference": total / count, "pairs": count, "trial": str(trial)}
            for task, (total, count, trial) in sorted(tasks.items(), key=lambda one: (one[1][0] / one[1][1], one[0]))
        ]
        for key, tasks in sums.items()
    }


def _grid(site: RunSite, name: str) -> Json | None:
    """Tasks by replicates, one cell per trial, for arms that fit on a page."""
    rows = [row for row in site.run.rows if row["variant_id"] == name]
    if not rows or len(rows) > GRID_CELLS:
        return None
    places = {task: place for place, task in enumerate(sorted({row["task_id"] for row in rows}))}
    replicates = 1 + max(row["repl_idx"] for row in rows)
    # A few tasks are named beside their marks; many are marks alone, and the table has their names.
    named = len(places) <= LABELLED_TASKS and replicates <= 24
    label = 150 if named else 0
    columns = max(1, 636 // (label + 14 * replicates + 12) if named else 40 // replicates)
    wide = label + 14 * replicates + (12 if named else 4)
    planned = {str(item.get("name")): item.get("type") for item in site.run.resolved.get("metrics") or []}
    binary = bool(site.metrics) and planned.get(site.metrics[0]) == "binary"
    cells = []
    for row in rows:
        line, column = divmod(places[row["task_id"]], columns)
        measured = site.tally.primary.get(row["trial_id"]) if binary else None
        ended = row.get("outcome") or row.get("status") or "none"
        if measured is not None:
            ended = "success" if measured else "failure"
        cells.append(
            {
                "x": 4 + column * wide + label + 14 * row["repl_idx"],
                "y": 4 + 18 * line,
                "kind": ended,
                "sign": SIGNS.get(ended, "–"),
                "href": site.places.trial(row).href,
                "label": f"{row['task_id']}, replicate {row['repl_idx']}: {ended}",
            }
        )
    lines = -(-len(places) // columns)
    return {
        "cells": cells,
        "labels": [
            {"text": task, "x": 4 + (place % columns) * wide, "y": 4 + 18 * (place // columns)}
            for task, place in places.items()
            if named
        ],
        "height": 18 * lines + 8,
        "tasks": len(places),
        "metric": site.metrics[0] if binary else "outcome",
    }


def _exemplars(site: RunSite, name: str, hrefs: dict[str, str]) -> list[Json]:
    return [
        {**group, "exemplars": [with_links(item, hrefs) for item in group.get("exemplars") or []]}
        for group in (site.run.exemplars or {}).get("groups") or []
        if group.get("variant") == name
    ]


def _summary(site: RunSite, name: str) -> Json | None:
    for item in (site.run.summary or {}).get("variants") or []:
        if isinstance(item, dict) and item.get("variant_id") == name:
            return item
    return None
