"""Pages as a reader meets them: by double-click, over http, light, dark, on a phone, on paper, without scripts."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pytest

from labaudit.site.server import SiteServer
from tests.browser.conftest import uri

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
AXE = Path(__file__).parents[1] / "node" / "node_modules" / "axe-core" / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def violations(page, rules: str = "") -> list[str]:
    """What axe-core finds; it is injected by evaluation, since the page's policy stops any foreign script."""
    wanted = {"type": "rule", "values": [rules]} if rules else {"type": "tag", "values": TAGS}
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate(f"axe.run(document, {{runOnly: {json.dumps(wanted)}}})")
    return [
        f"{item['id']}: {node['target']} {node.get('failureSummary', '')[:200]}"
        for item in found["violations"]
        for node in item["nodes"]
    ]


@pytest.mark.node
def test_axe_finds_nothing_on_any_kind_of_page_in_light_and_dark(opened, site, kinds):
    for kind in kinds:
        watched = opened(uri(site.path, kind))
        if kind == "trials.html":
            watched.page.wait_for_selector("#tool[data-ready]", state="attached")
        assert violations(watched.page) == [], kind
        watched.page.emulate_media(color_scheme="dark")
        # Of all rules only this one looks at colours; the long checks run all of them in the dark too.
        assert violations(watched.page, "color-contrast") == [], f"{kind} in the dark"
        watched.page.close()


@pytest.mark.node
@pytest.mark.acceptance
def test_axe_finds_nothing_with_all_rules_in_the_dark_and_on_a_phone(opened, site, kinds):
    for kind in kinds:
        for phone in (False, True):
            watched = opened(uri(site.path, kind), dark=True, phone=phone)
            assert violations(watched.page) == [], kind
            watched.page.close()


@pytest.mark.node
def test_axe_finds_nothing_on_the_answer_of_verify(opened, site):
    trial = next(iter(sorted((site.path / "trials").iterdir())))
    address = trial.read_text("utf-8").split("verify.html#")[1].split('"')[0]
    for dark in (False, True):
        watched = opened(uri(site.path, f"verify.html#{address}"), dark=dark)
        watched.page.wait_for_selector("#answer:not([hidden])")
        assert violations(watched.page) == []


def test_no_page_asks_for_anything_beyond_the_site_or_breaks_its_policy(opened, site, server, kinds):
    for kind in kinds:
        for address in (uri(site.path, kind), server.address + kind):
            watched = opened(address)
            watched.page.wait_for_load_state("load")
            assert watched.quiet(), (address, watched.foreign, watched.complaints)


def test_every_kind_of_page_is_readable_without_scripts(opened, site, kinds):
    for kind in kinds:
        watched = opened(uri(site.path, kind), scripts=False)
        assert watched.page.locator("h1").first.is_visible(), kind
        assert len(watched.page.locator("main").inner_text()) > 80, kind
        assert watched.quiet(), kind


def test_without_scripts_every_trial_stands_in_the_static_pages_of_the_table(opened, site, made):
    first = opened(uri(site.path, "trials.html"), scripts=False).page
    assert first.locator("#trials tbody tr").count() == 25
    first.click("#pages a >> nth=1")
    assert first.url.endswith("trials-p2.html")
    assert first.locator("#trials tbody tr").count() == 15


def test_no_page_is_wider_than_a_phone(opened, site, hostile, kinds):
    pages = [(site.path / kind) for kind in kinds] + sorted((hostile.path / "trials").iterdir())[::2]
    pages += [hostile.path / name for name in ("index.html", "trials.html", "variants/base.html")]
    wide = {}
    for path in pages:
        page = opened(path.as_uri(), phone=True).page
        width, room = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        if width > room:
            wide[path] = width
        page.close()
    assert wide == {}


def test_nothing_that_an_agent_wrote_runs(opened, hostile):
    pages = [*sorted((hostile.path / "trials").iterdir()), *sorted((hostile.path / "variants").iterdir())]
    for path in [*pages, *(hostile.path / name for name in ("index.html", "trials.html", "contracts.html"))]:
        watched = opened(path.as_uri())
        assert watched.page.title() != "owned", path
        assert watched.quiet(), (path, watched.complaints)
        watched.page.close()


def test_from_grade_to_event_in_three_clicks(opened, site):
    page = opened(uri(site.path, "index.html")).page
    page.click(".card h3 a:has-text('isolation')")
    assert page.url.endswith("grades.html#isolation")
    page.click("#I13 td:nth-child(4) a >> nth=0")
    assert "/trials/" in page.url
    page.click("table.events tbody tr:nth-child(3) a")
    assert page.url.endswith("#e2")
    assert page.locator("#e2").is_visible()


def test_the_keyboard_reaches_the_content_first(opened, site):
    page = opened(uri(site.path, "index.html")).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_paper_has_no_navigation_and_shows_whole_tables(opened, site):
    page = opened(uri(site.path, "grades.html")).page
    page.emulate_media(media="print")
    assert not page.locator(".top nav").is_visible()
    assert page.locator(".wide").first.evaluate("element => getComputedStyle(element).overflowX") == "visible"


def test_paper_shows_the_table_beneath_a_plot_though_it_is_folded_on_the_screen(opened, site):
    page = opened(uri(site.path, "variants/drop_10p.html")).page
    table = page.locator("details.paper table").first
    assert not table.is_visible()
    page.emulate_media(media="print")
    assert table.bounding_box()["height"] > 20


def test_a_command_is_copied_whole_and_selected_by_one_click_without_scripts(opened, site):
    page = opened(uri(site.path, "attestations.html")).page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click(".pasted button.copy >> nth=0")
    page.wait_for_function("document.querySelector('.pasted button.copy').textContent === 'copied'")
    assert page.evaluate("navigator.clipboard.readText()") == "labaudit verify RUN-FOLDER --key publisher.pub"
    plain = opened(uri(site.path, "attestations.html"), scripts=False).page
    assert plain.locator("button.copy").count() == 0
    chosen = plain.locator("pre.command").first.evaluate("element => getComputedStyle(element).userSelect")
    assert chosen == "all"


def test_the_site_works_from_a_folder_below_the_servers_root(opened, site, tmp_path):
    (tmp_path / "deep").mkdir()
    shutil.copytree(site.path, tmp_path / "deep" / "er")
    (tmp_path / "index.html").write_text("root")
    with SiteServer(tmp_path) as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        watched = opened(running.address + "deep/er/index.html")
        watched.page.click("nav >> text=Trials")
        watched.page.wait_for_selector("#tool[data-ready]", state="attached")
        watched.page.click("#trials tbody tr:first-child a")
        assert watched.page.locator("h1").inner_text().endswith(tuple("0123456789abcdef"))
        assert watched.quiet()
        running.shutdown()


def test_no_word_of_a_table_head_is_broken_on_a_phone_or_on_paper(opened, site, kinds):
    broken = """() => [...document.querySelectorAll('main thead th:not([data-key])')].filter(th => {
        const range = document.createRange(); range.selectNodeContents(th);
        const lines = new Set([...range.getClientRects()].map(one => Math.round(one.top))).size;
        return th.offsetParent && lines > th.textContent.trim().split(/[\\s-]+/).length;
    }).map(th => th.textContent.trim())"""
    for kind in kinds:
        page = opened(uri(site.path, kind), phone=True).page
        assert page.evaluate(broken) == [], kind
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 688, "height": 1000})
        assert page.evaluate(broken) == [], f"{kind} on paper"
        assert page.evaluate("document.documentElement.scrollWidth") <= 700, f"{kind} on paper"
        page.close()
