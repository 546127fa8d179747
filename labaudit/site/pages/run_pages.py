"""One run to all its pages: trials in one streaming pass, then the pages that speak about all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from labaudit.core.canonical import canonical_bytes
from labaudit.core.merkle import ProofTree
from labaudit.site.drawing import figures
from labaudit.site.drawing.places import Places, table_page
from labaudit.site.drawing.templates import render
from labaudit.site.output import SiteWriter
from labaudit.site.pages.contracts import ContractTally
from labaudit.site.pages.data_shards import (
    ROWS_PER_SHARD,
    CheckShards,
    TableShards,
    leaf_hashes,
    primary_value,
    table_columns,
    table_row,
)
from labaudit.site.pages.frame import run_frame
from labaudit.site.pages.tally import Tally
from labaudit.site.pages.trial_page import Neighbours, render_more_events, render_trial, trial_context
from labaudit.site.reading.lineage import Family
from labaudit.site.reading.published_run import PublishedRun
from labaudit.site.reading.run_check import RunCheck
from labaudit.site.reading.trial_reading import TrialReading, read_trial

Json = dict[str, Any]
ROWS_PER_PAGE = 200
Progress = Callable[[int, int], None]


@dataclass
class RunSite:
    """One run on its way into a site; `base` is the run's folder in the site, empty or ended by a slash."""

    writer: SiteWriter
    run: PublishedRun
    check: RunCheck
    base: str
    places: Places
    tally: Tally
    metrics: list[str]
    contracts: ContractTally
    family: Family

    @property
    def site_prefix(self) -> str:
        """The way from the run's root to the site's."""
        return "../" * self.base.count("/")

    def frame(self, current: str = "") -> Json:
        """The frame of one of this run's pages."""
        return run_frame(self.run, site_prefix=self.site_prefix, current=current)

    def write_json(self, path: str, value: object) -> None:
        """Adds one canonical JSON file."""
        self.writer.write(self.base + path, canonical_bytes(value))

    def page(self, path: str, template: str, **values: Any) -> None:
        """Renders and adds one page."""
        root = "../" * path.count("/")
        frame = self.frame(path)
        self.writer.write(self.base + path, render(template, **frame, run_root=root, **values))


def start(writer: SiteWriter, run: PublishedRun, check: RunCheck, base: str, family: Family) -> RunSite:
    """The state before the first page."""
    places = Places(run.rows)
    plan = run.resolved.get("analysis_plan") or {}
    metrics = list(dict.fromkeys([*(plan.get("primary") or []), *(plan.get("secondary") or [])]))
    names = [str(name) for name in metrics]
    return RunSite(writer, run, check, base, places, Tally(places), names, ContractTally(), family)


def write_trials(site: RunSite, progress: Progress | None) -> None:
    """All trial pages, the trials table in static pages and data files, and the data for the browser's check."""
    run = site.run
    pairs = run.pairs()
    leaves = list(leaf_hashes(run))
    checks = CheckShards(site.writer, site.base, run, ProofTree(leaves))
    shards = TableShards(site.writer, site.base, table_columns(site.metrics))
    frame = site.frame("trials.html")
    table: list[list[object]] = []
    pages = max(1, -(-len(run.rows) // ROWS_PER_PAGE))
    number = 0
    for path, group in _by_page(site, pairs):
        contexts = []
        for reading, near in group:
            context = trial_context(run, reading, site.places, near, checks.add(reading))
            context["relatives"] = site.family.of_trial(reading.trial_id)
            context["parent"] = site.family.parent
            place = site.places.trial(reading.row)
            site.tally.add(reading)
            example = {"trial_id": reading.trial_id, "href": place.href}
            site.contracts.add(example, reading)
            site.tally.primary[reading.trial_id] = primary_value(reading, site.metrics)
            row = table_row(reading, site.places, site.metrics, context["seconds"])
            shards.add(row)
            table.append(row)
            for more, data in render_more_events(frame, context, place):
                site.writer.write(site.base + more, data)
            context.pop("all_events")
            contexts.append(context)
            if len(table) == ROWS_PER_PAGE:
                number += 1
                _table_page(site, table, number, pages)
                table = []
            if progress:
                progress(reading.row["index"] + 1, len(run.rows))
        site.writer.write(site.base + path, render_trial(frame, place, contexts))
    if table or not number:
        _table_page(site, table, number + 1, pages)
    shards.flush()
    checks.flush()


def _by_page(
    site: RunSite, pairs: dict[tuple[str, int], list[Json]]
) -> Iterator[tuple[str, Iterator[tuple[TrialReading, Neighbours]]]]:
    """Rows in schedule order, or page by page when several share one."""
    rows = site.run.rows
    order = range(len(rows))
    if site.places.grouped:
        order = sorted(order, key=lambda place: (site.places.trial(rows[place]).path, rows[place]["repl_idx"]))  # type: ignore[assignment]

    def read(place: int) -> tuple[TrialReading, Neighbours]:
        row = rows[place]
        near = Neighbours(
            rows[place - 1] if place else None,
            rows[place + 1] if place + 1 < len(rows) else None,
            [other for other in pairs[row["task_id"], row["repl_idx"]] if other is not row],
        )
        return read_trial(site.run, row), near

    for path, places in groupby(order, key=lambda place: site.places.trial(rows[place]).path):
        yield path, map(read, places)


def _table_page(site: RunSite, rows: list[list[object]], number: int, pages: int) -> None:
    columns = table_columns(site.metrics)
    site.page(
        table_page(number),
        "trials.html",
        rows=[dict(zip(columns, row, strict=True)) for row in rows],
        number=number,
        pages=[(page, table_page(page)) for page in range(1, pages + 1)],
        metrics=site.metrics,
        shards=-(-len(site.run.rows) // ROWS_PER_SHARD) or 1,
        page_rows=ROWS_PER_PAGE,
        seconds=figures.seconds,
    )
