"""A real browser, sites of made runs, and a watch over everything that a page asks for."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

from labaudit.site import BuiltSite, build_site
from labaudit.site.server import SiteServer
from tests.make_run import MadeRun, RunPlan, make_run
from tests.unit.site.site_runs import hostile_run

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
    # Nothing but loopback has an address here; site.test is loopback under a name that is no secure context.
    "--host-resolver-rules=MAP site.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]  # fmt: skip
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 900}


@dataclass
class Watched:
    """A page and what it did besides being read."""

    page: Page
    foreign: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def quiet(self) -> bool:
        """True when nothing left the site and nothing was blocked or broken."""
        return not self.foreign and not self.complaints


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, driven by Playwright; each launch has a profile of its own."""
    path = next(found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name)))
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield launched
        launched.close()


class Opener:
    """Opens watched pages; every context it made is closed at the end."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: dict[tuple[bool, bool, bool], BrowserContext] = {}

    def __call__(self, address: str, *, scripts: bool = True, dark: bool = False, phone: bool = False) -> Watched:
        watched = Watched(self._context(scripts, dark, phone).new_page())
        watched.page.on("request", lambda request: _note(watched, request))
        watched.page.on("console", lambda message: _complain(watched, message))
        watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
        watched.page.on("dialog", lambda dialog: (watched.complaints.append("dialog"), dialog.dismiss()))
        watched.page.goto(address)
        return watched

    def _context(self, scripts: bool, dark: bool, phone: bool) -> BrowserContext:
        """One profile for all pages of a test that are looked at in the same way."""
        key = (scripts, dark, phone)
        if key not in self._contexts:
            self._contexts[key] = self._browser.new_context(
                java_script_enabled=scripts,
                color_scheme="dark" if dark else "light",
                viewport=PHONE if phone else DESKTOP,  # type: ignore[arg-type]
            )
        return self._contexts[key]

    def close(self) -> None:
        for context in self._contexts.values():
            context.close()


def _note(watched: Watched, request: Request) -> None:
    parts = urlsplit(request.url)
    if parts.scheme not in ("file", "blob") and parts.hostname not in ("127.0.0.1", "localhost", "site.test"):
        watched.foreign.append(request.url)


def _complain(watched: Watched, message: ConsoleMessage) -> None:
    if message.type in ("error", "warning"):
        watched.complaints.append(message.text)


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opener]:
    """Opens pages and closes them after the test."""
    opener = Opener(browser)
    yield opener
    opener.close()


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeRun:
    """A run of 40 trials."""
    failures = frozenset(number for number in range(40) if number % 3 == 1)
    return make_run(tmp_path_factory.mktemp("run"), RunPlan(tasks=10, replications=2, failures=failures))


@pytest.fixture(scope="session")
def site(made: MadeRun, tmp_path_factory: pytest.TempPathFactory) -> BuiltSite:
    """Its site, with so few rows to a page that the table has two."""
    with patch("labaudit.site.pages.run_pages.ROWS_PER_PAGE", 25):
        return build_site([made.run.path], tmp_path_factory.mktemp("site") / "site")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> BuiltSite:
    """A site whose every text tries to leave the page."""
    folder = tmp_path_factory.mktemp("hostile")
    return build_site([hostile_run(folder).run.path], folder / "site")


@pytest.fixture(scope="session")
def server(site: BuiltSite) -> Iterator[SiteServer]:
    """The site over http on loopback."""
    with SiteServer(site.path) as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture(scope="session")
def kinds(site: BuiltSite) -> list[str]:
    """One page of every kind."""
    trials = sorted(path.name for path in (site.path / "trials").iterdir())
    return [
        "index.html", "grades.html", "variants/drop_10p.html", "variants/base.html", "trials.html",
        f"trials/{trials[0]}", "network.html", "attestations.html", "verify.html", "sbom.html", "contracts.html",
        "methodology.html", "glossary.html", "downloads.html", "compare.html", "404.html",
    ]  # fmt: skip


def uri(folder: Path, page: str) -> str:
    """The address of a page opened by double-click."""
    path, _, anchor = page.partition("#")
    return (folder / path).as_uri() + (f"#{anchor}" if anchor else "")
