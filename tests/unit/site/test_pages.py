"""Every page: strict about scripts, complete in its links, readable as it stands."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from labaudit.site import build_site
from labaudit.site.pages.frame import CSP
from tests.make_run import RunPlan, make_run
from tests.unit.site.site_runs import HOSTILE_TASKS, long_run

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Collects what a test asks of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.sources: list[str] = []
        self.ids: list[str] = []
        self.inline: list[str] = []
        self.metas: list[dict[str, str | None]] = []
        self.headings: list[str] = []
        self.tags: list[str] = []
        self.text: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.tags.append(tag)
        if named.get("id"):
            self.ids.append(str(named["id"]))
        if tag == "a" and named.get("href"):
            self.links.append(str(named["href"]))
        if tag in ("script", "link", "img") and (named.get("src") or named.get("href")):
            self.sources.append(str(named.get("src") or named.get("href")))
        if tag == "script" and "src" not in named and named.get("type") != "application/ld+json":
            self.inline.append("script")
        if tag == "style" or "style" in named:
            self.inline.append("style")
        self.inline += [name for name in named if name.startswith("on")]
        if tag == "meta":
            self.metas.append(named)
        if tag in ("h1", "h2", "h3"):
            self.headings.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_all_thirteen_kinds_of_page_are_there(site, made):
    there = {path.relative_to(site.path).as_posix() for path in site.path.rglob("*.html")}
    wanted = {
        "index.html", "grades.html", "variants/base.html", "variants/drop_10p.html", "trials.html", "network.html",
        "attestations.html", "verify.html", "sbom.html", "contracts.html", "methodology.html", "glossary.html",
        "downloads.html", "compare.html", "404.html",
    }  # fmt: skip
    assert wanted <= there


def test_no_page_has_an_inline_script_a_style_or_a_handler_and_the_policy_stands_first(html_pages):
    for path in html_pages:
        page = Page(path)
        assert page.inline == [], path
        assert page.metas[0] == {"http-equiv": "Content-Security-Policy", "content": CSP}, path


def test_every_link_leads_to_a_file_and_an_anchor_of_the_site(site, html_pages):
    pages = {path: Page(path) for path in html_pages}
    for path, page in pages.items():
        for link in [*page.links, *page.sources]:
            parts = urlsplit(link)
            assert (parts.scheme, parts.netloc) == ("", ""), f"{path}: {link} leaves the site"
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), f"{path}: {link}"
            assert target.is_relative_to(site.path.resolve())
            if parts.fragment and target.suffix == ".html" and target.name != "verify.html":
                assert parts.fragment in (pages.get(target) or Page(target)).ids, f"{path}: {link}"


def test_ids_are_unique_and_headings_start_with_one_h1(html_pages):
    for path in html_pages:
        page = Page(path)
        assert len(page.ids) == len(set(page.ids)), path
        assert page.headings[0] == "h1", path
        assert page.headings.count("h1") == 1, path


def test_hostile_text_stays_text_on_every_page(hostile):
    for path in sorted(hostile.path.rglob("*.html")):
        page = Page(path)
        assert page.inline == [], path
        assert "img" not in page.tags, path
        assert "\u202e" not in path.read_text("utf-8"), path
        assert "\x1b" not in path.read_text("utf-8"), path
    trial = next(path for path in (hostile.path / "trials").iterdir() if "passwd" in path.name)
    text = "".join(Page(trial).text)
    assert "<script>document.title='owned'</script>" in text
    assert "⟨U+001B⟩[31mred" in text
    assert "⟨U+202E⟩gnp.exe" in text


def test_hostile_text_cannot_end_a_data_file_early(hostile):
    for path in sorted((hostile.path / "data").iterdir()):
        assert b"<" not in path.read_bytes() or path.suffix == ".json", path
    table = json.loads((hostile.path / "data" / "trials-000.json").read_bytes())
    assert set(HOSTILE_TASKS) == set(table["values"]["task"])


def test_a_long_log_is_paged_and_ten_megabytes_of_one_line_are_shown_by_their_head(tmp_path):
    built = build_site([long_run(tmp_path).run.path], tmp_path / "site")
    trials = sorted((built.path / "trials").iterdir())
    first = next(path for path in trials if path.name.startswith("base") and ".p" not in path.name)
    page = Page(first)
    assert "e199" in page.ids
    assert "e200" not in page.ids
    third = Page(first.with_name(first.stem + ".p3.html"))
    assert third.ids[-1] == "e449"
    assert first.stat().st_size < 200_000
    assert "10.0 MiB" in "".join(page.text)


@pytest.mark.parametrize(
    ("plan", "sign", "says"),
    [
        (RunPlan(tasks=1, lost=frozenset({0, 1})), True, "No trial counts"),
        (RunPlan(tasks=1, lost=frozenset(), with_sbom=False), False, "Nobody signed this run"),
        (RunPlan(tasks=1, lost=frozenset(), analysis=False), True, "no analysis"),
    ],
    ids=["all lost", "unsigned", "no analysis"],
)
def test_a_run_that_lacks_something_has_a_site_that_says_so(tmp_path, plan, sign, says):
    made = make_run(tmp_path, plan, sign=sign)
    built = build_site([made.run.path], tmp_path / "site", allow_failed=not plan.analysis)
    assert says in "".join(Page(built.front_page).text)


def test_the_publishers_own_check_says_whole_and_never_verified(site):
    text = "".join(Page(site.path / "index.html").text)
    assert "signer not judged" in text
    assert "verified" not in text


def test_a_rule_that_is_met_leads_to_a_trial_that_shows_it(site):
    page = (site.path / "grades.html").read_text("utf-8")
    row = page.split('<tr id="I03">')[1].split("<tr ")[0]
    assert "met" in row
    assert 'href="trials/' in row


def test_a_rule_about_what_no_trial_has_is_not_met_but_without_evidence(site):
    page = (site.path / "grades.html").read_text("utf-8")
    for rule in ("R04", "R06", "P03", "I16"):
        row = page.split(f'<tr id="{rule}">')[1].split("<tr ")[0]
        assert "is-no_evidence" in row, rule
        assert "no evidence in 6 of 6" in row, rule
        assert "is-met" not in row, rule


def test_a_bill_of_materials_counts_what_is_in_the_image_the_same_in_both_formats(site):
    text = "".join(Page(site.path / "sbom.html").text)
    assert "CycloneDX, generated; 2 packages" in text
    assert "SPDX, generated; 2 packages" in text


def test_several_runs_share_a_site_with_a_comparison(tmp_path, made):
    other = make_run(tmp_path, RunPlan(tasks=2, replications=2))
    built = build_site([made.run.path, other.run.path], tmp_path / "site")
    text = "".join(Page(built.path / "compare.html").text)
    assert made.run.run_id in text
    assert other.run.run_id in text
    for run in (made, other):
        assert (built.path / "runs" / run.run.run_id / "trials.html").is_file()
    for path in sorted(built.path.rglob("*.html")):
        for link in Page(path).links:
            parts = urlsplit(link)
            if parts.path:
                assert (path.parent / unquote(parts.path)).resolve().is_file(), f"{path}: {link}"


def test_above_the_limit_replicates_share_a_page_and_every_link_still_leads_somewhere(tmp_path, monkeypatch):
    monkeypatch.setattr("labaudit.site.drawing.places.GROUPED_ABOVE", 3)
    made = make_run(tmp_path, RunPlan(tasks=2, replications=2, lost=frozenset()))
    built = build_site([made.run.path], tmp_path / "site")
    pages = sorted((built.path / "trials").iterdir())
    assert len(pages) == 4
    page = Page(pages[0])
    assert "r0-e0" in page.ids
    assert "r1-e0" in page.ids
    for path in sorted(built.path.rglob("*.html")):
        for link in Page(path).links:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file()
            if parts.fragment and target.name != "verify.html":
                assert parts.fragment in Page(target).ids, f"{path}: {link}"


def test_one_entry_of_the_navigation_is_the_current_one(tmp_path, made, site):
    other = make_run(tmp_path, RunPlan(tasks=1, lost=frozenset()))
    both = build_site([made.run.path, other.run.path], tmp_path / "site")
    pages = [site.front_page, both.front_page, both.path / "runs" / other.run.run_id / "index.html"]
    for path in [*pages, both.path / "runs" / other.run.run_id / "grades.html", both.path / "verify.html"]:
        nav = path.read_text("utf-8").split('<nav aria-label="Pages">')[1].split("</nav>")[0]
        assert nav.count("aria-current") == 1, path
