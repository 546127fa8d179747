"""What every page has around its content: policy, navigation, version, and the way back to the site's root."""

from __future__ import annotations

from typing import Any

from labaudit import __version__
from labaudit.site.drawing.places import variant_page
from labaudit.site.reading.published_run import PublishedRun

Json = dict[str, Any]
CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'"
RUN_NAV = (
    ("index.html", "Overview"),
    ("grades.html", "Grades"),
    ("trials.html", "Trials"),
    ("network.html", "Network"),
    ("attestations.html", "Attestations"),
    ("sbom.html", "SBOM"),
    ("contracts.html", "Contracts"),
    ("downloads.html", "Downloads"),
)
SITE_NAV = (
    ("compare.html", "Compare"),
    ("methodology.html", "Methodology"),
    ("glossary.html", "Glossary"),
    ("verify.html", "Verify"),
)


def run_frame(run: PublishedRun, *, site_prefix: str, current: str = "") -> Json:
    """The frame of a page that belongs to one run; `site_prefix` leads from the run's root to the site's."""
    site_nav = (("index.html", "All runs"), *SITE_NAV) if site_prefix else SITE_NAV
    return _frame(run, RUN_NAV, site_nav, site_prefix, current)


def site_frame(*, current: str = "", run: PublishedRun | None = None) -> Json:
    """The frame of a page at the site's root; a site of one run shows that run's pages in its navigation."""
    if run is not None:
        return {**_frame(run, RUN_NAV, SITE_NAV, "", current), "run_root": ""}
    return {**_frame(None, (), (("index.html", "All runs"), *SITE_NAV), "", current), "run_root": ""}


def _frame(
    run: PublishedRun | None,
    run_nav: tuple[tuple[str, str], ...],
    site_nav: tuple[tuple[str, str], ...],
    site_prefix: str,
    current: str,
) -> Json:
    return {
        "csp": CSP,
        "run": run,
        "run_nav": run_nav,
        "site_nav": site_nav,
        "site_prefix": site_prefix,
        "current": current,
        "version": __version__,
        "variant_page": variant_page,
    }
