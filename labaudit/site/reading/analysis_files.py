"""Exemplars and suspects to values with every key that a page prints; an entry of another shape is left out and told.

The other documents of a run have schemas or records to be held to; these two have neither.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
_SUSPECT_TEXTS = ("variant", "id", "status", "sentence", "evidence_source")
_EXEMPLAR_TEXTS = ("kind", "task_id")


def clean_suspects(document: Json | None, problems: list[str]) -> Json | None:
    """`suspects.json` with usable entries only."""
    if document is None:
        return None
    found = document.get("suspects")
    entries = found if isinstance(found, list) else []
    kept = [_suspect(item) for item in entries if _has_texts(item, _SUSPECT_TEXTS) and _is_coverage(item)]
    if not isinstance(found, list) or len(kept) < len(entries):
        problems.append(f"analysis/suspects.json holds {len(entries) - len(kept)} entries that cannot be read")
    return {"suspects": kept}


def clean_exemplars(document: Json | None, problems: list[str]) -> Json | None:
    """`exemplars.json` with usable groups and entries only."""
    if document is None:
        return None
    found = document.get("groups")
    groups = [item for item in found if _has_texts(item, ("variant", "metric"))] if isinstance(found, list) else []
    kept = [
        {
            "variant": item["variant"],
            "metric": item["metric"],
            "reason": item.get("reason") if isinstance(item.get("reason"), str) else None,
            "exemplars": [_exemplar(one) for one in _list(item.get("exemplars")) if _has_texts(one, _EXEMPLAR_TEXTS)],
        }
        for item in groups
    ]
    if not isinstance(found, list) or len(kept) < len(found):
        problems.append("analysis/exemplars.json holds groups that cannot be read")
    return {"groups": kept}


def _suspect(item: Json) -> Json:
    p = item.get("p_adjusted")
    coverage = item["coverage"]
    return {
        **{name: item[name] for name in _SUSPECT_TEXTS},
        "p_adjusted": p if _is_number(p) else None,
        "coverage": {"covered": coverage["covered"], "total": coverage["total"]},
    }


def _exemplar(item: Json) -> Json:
    difference = item.get("difference")
    return {
        "kind": item["kind"],
        "task_id": item["task_id"],
        "rank": item.get("rank") if isinstance(item.get("rank"), int) else 0,
        "difference": difference if _is_number(difference) else None,
        "pairs": [
            {name: pair.get(name) for name in ("repl_idx", "baseline_trial", "variant_trial")}
            for pair in _list(item.get("pairs"))
            if isinstance(pair, dict)
        ],
    }


def _has_texts(item: object, names: tuple[str, ...]) -> bool:
    return isinstance(item, dict) and all(isinstance(item.get(name), str) for name in names)


def _is_coverage(item: Json) -> bool:
    coverage = item.get("coverage")
    return isinstance(coverage, dict) and all(type(coverage.get(name)) is int for name in ("covered", "total"))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
