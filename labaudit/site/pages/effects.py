"""Comparisons of the analysis to rows, sentences and forest plots; no number is computed here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labaudit.site.drawing import charts, figures
from labaudit.site.drawing.places import variant_page
from labaudit.site.reading.published_run import PublishedRun

Json = dict[str, Any]
UNITS = {
    "risk_diff": "difference in success rate",
    "mean_diff": "difference of means",
    "median_diff": "median of task differences",
    "log_ratio": "log ratio",
}


CORRECTIONS = {"holm": "Holm", "bh": "Benjamini-Hochberg", "none": "nothing"}


def effect_rows(run: PublishedRun) -> list[Json]:
    """The run's comparisons ready to print, primary ones first, each with who saw its metric."""
    order = {"primary": 0, "secondary": 1}
    rows = [{**_row(item), "evidence": run.metric_evidence(item.get("metric"))} for item in run.planned_comparisons()]
    return sorted(rows, key=lambda row: (order.get(row["role"], 2), row["metric"], row["variant"]))


def forest_plot(rows: Sequence[Json], *, label: str, root: str = "") -> charts.Forest | None:
    """The effects of rows that share one scale."""
    items = [
        {
            "label": row[label],
            "href": f"{root}{variant_page(row['variant'])}#{row['anchor']}",
            "estimate": row["estimate"],
            "low": row["low"],
            "high": row["high"],
            "favours": row["favours"],
            "text": row["text"],
        }
        for row in rows
    ]
    return charts.forest(items)


def _row(item: Json) -> Json:
    interval = item.get("interval") if isinstance(item.get("interval"), dict) else {}
    p = item.get("p") if isinstance(item.get("p"), dict) else {}
    assert interval is not None
    assert p is not None
    low, high, estimate = interval.get("low"), interval.get("high"), item.get("estimate")
    row: Json = {
        **item,
        "anchor": f"m-{item.get('metric')}",
        "unit": UNITS.get(str(item.get("effect")), str(item.get("effect"))),
        "low": low,
        "high": high,
        "level": interval.get("level"),
        "method": interval.get("method"),
        "p_raw": p.get("value"),
        "p_adjusted": p.get("adjusted"),
        "correction": CORRECTIONS.get(str(p.get("correction")), p.get("correction")),
        "family_size": p.get("family_size"),
        "p_reason": (p.get("reason") or {}).get("sentence"),
        "favours": item.get("favours") or "undecided",
        "percentile": item.get("percentile_interval") or {},
        "mde": item.get("minimal_detectable_effect") or {},
        "manski": item.get("manski_bounds") or {},
        "warnings": item.get("warnings") or [],
        "why": (item.get("reason") or {}).get("sentence"),
    }
    row["text"] = _text(estimate, low, high, row["level"])
    row["sentence"] = _sentence(row)
    return row


def _text(estimate: object, low: object, high: object, level: object) -> str:
    if estimate is None:
        return "no estimate"
    text = figures.signed(estimate)
    if low is None or high is None:
        return f"{text}, no interval"
    percent = f"{100 * level:.0f}\u202f% " if isinstance(level, int | float) else ""
    return f"{text}, {percent}interval {figures.signed(low)} to {figures.signed(high)}"


def _sentence(row: Json) -> str:
    if row.get("estimate") is None:
        return f"{row['metric']} of {row['variant']} cannot be estimated: {row['why'] or 'no reason is given'}"
    low, high = row["low"], row["high"]
    if low is None or high is None:
        return "An estimate without an interval says nothing about how far it could be off."
    if low <= 0 <= high:
        return "The interval contains zero: the data do not show a difference."
    better = row["favours"]
    return f"The interval excludes zero; it favours the {better}." if better != "undecided" else "Read as undecided."
