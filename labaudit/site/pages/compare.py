"""Several runs to `compare.html`: the same figures side by side, and what keeps them from being comparable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from labaudit.site.drawing.places import variant_page
from labaudit.site.drawing.templates import render
from labaudit.site.output import SiteWriter
from labaudit.site.pages.effects import effect_rows
from labaudit.site.pages.frame import site_frame
from labaudit.site.pages.overview import variant_lines
from labaudit.site.pages.trial_page import grade_rows
from labaudit.site.reading.published_run import PublishedRun

Json = dict[str, Any]


def write_compare(writer: SiteWriter, runs: Sequence[PublishedRun]) -> None:
    """`compare.html` at the site's root; with one run it says what a second one would add."""
    frame = site_frame(current="compare.html", run=runs[0] if len(runs) == 1 else None)
    columns = [_column(run, "" if len(runs) == 1 else f"runs/{run.run_id}/") for run in runs]
    page = render("compare.html", **frame, columns=columns, differences=differences(runs))
    writer.write("compare.html", page)


def _column(run: PublishedRun, root: str) -> Json:
    lines = [{**line, "href": root + variant_page(line["id"])} for line in variant_lines(run)]
    return {
        "run": run,
        "root": root,
        "variants": lines,
        "effects": {(row["variant"], row["metric"]): row for row in effect_rows(run)},
        "grades": grade_rows(run.grades),
        "level": ((run.grades or {}).get("integration_level") or {}).get("observed", "not_observed"),
        "variant_page": variant_page,
    }


def differences(runs: Sequence[PublishedRun]) -> list[Json]:
    """What differs between runs that a reader would otherwise take for the same experiment."""
    facts: list[tuple[str, Callable[[PublishedRun], object]]] = [
        ("tasks (dataset digest)", lambda run: (run.resolved.get("dataset") or {}).get("sha256")),
        ("harness source", lambda run: _harness(run).get("source_digest")),
        ("harness program", lambda run: _harness(run).get("exec_digest")),
        ("image", lambda run: ((run.resolved.get("runtime") or {}).get("image") or {}).get("id")),
        ("network mode", lambda run: ((run.resolved.get("runtime") or {}).get("network") or {}).get("mode")),
        ("profile", lambda run: (run.resolved.get("design") or {}).get("sanitization_profile")),
        ("replicates", lambda run: (run.resolved.get("design") or {}).get("replications")),
        ("engine", lambda run: ((run.resolved.get("runtime") or {}).get("engine") or {}).get("resolved")),
    ]
    found = []
    for name, read in facts:
        values = [str(read(run) or "not stated") for run in runs]
        found.append({"name": name, "each": values, "same": len(set(values)) == 1})
    return found


def _harness(run: PublishedRun) -> Json:
    return (run.resolved.get("runtime") or {}).get("harness") or {}
