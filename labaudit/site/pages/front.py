"""Pages at the site's root that belong to no single run: the list of runs, methodology, glossary, not found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labaudit.records.grades import SCALES
from labaudit.site.drawing.templates import render
from labaudit.site.output import SiteWriter
from labaudit.site.pages.frame import site_frame
from labaudit.site.pages.glossary_words import WORDS
from labaudit.site.pages.grade_rules import RULES
from labaudit.site.pages.overview import variant_lines
from labaudit.site.pages.trial_page import grade_rows
from labaudit.site.reading.lineage import Family
from labaudit.site.reading.published_run import PublishedRun
from labaudit.site.reading.run_check import RunCheck


def write_front(
    writer: SiteWriter, runs: Sequence[PublishedRun], checks: Sequence[RunCheck], related: Mapping[str, Family]
) -> None:
    """All of them; a site of one run has that run's overview as its front page."""
    alone = runs[0] if len(runs) == 1 else None
    if alone is None:
        rows = [
            {
                "run": run,
                "check": check,
                "href": f"runs/{run.run_id}/index.html",
                "grades": grade_rows(run.grades),
                "variants": variant_lines(run),
                "family": related[run.run_id],
            }
            for run, check in zip(runs, checks, strict=True)
        ]
        writer.write("index.html", render("runs.html", **site_frame(current="index.html"), rows=rows))
    writer.write(
        "methodology.html",
        render("methodology.html", **site_frame(current="methodology.html", run=alone), rules=RULES, scales=SCALES),
    )
    writer.write(
        "glossary.html", render("glossary.html", **site_frame(current="glossary.html", run=alone), words=WORDS)
    )
    writer.write("404.html", render("404.html", **site_frame(run=alone)))
