"""Made runs and their sites, built once for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from labaudit.site import BuiltSite, build_site
from tests.make_run import MadeRun, RunPlan, make_run
from tests.unit.site.site_runs import hostile_run


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeRun:
    """A sealed, signed run of six trials, one of them lost and one failed."""
    return make_run(tmp_path_factory.mktemp("made"), RunPlan())


@pytest.fixture(scope="session")
def site(made: MadeRun, tmp_path_factory: pytest.TempPathFactory) -> BuiltSite:
    """Its site."""
    return build_site([made.run.path], tmp_path_factory.mktemp("site") / "site")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> BuiltSite:
    """The site of a run whose every text tries to leave the page."""
    folder = tmp_path_factory.mktemp("hostile")
    return build_site([hostile_run(folder).run.path], folder / "site")


@pytest.fixture(scope="session")
def html_pages(site: BuiltSite) -> list[Path]:
    """All pages of the plain site."""
    return sorted(site.path.rglob("*.html"))
