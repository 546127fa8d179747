"""The trials table with scripts: filter, sort, pages, and a state that can be linked to."""

from __future__ import annotations

import json

import pytest

from tests.browser.conftest import uri

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture
def table(opened, site):
    page = opened(uri(site.path, "trials.html")).page
    page.wait_for_selector("#tool[data-ready]", state="attached")
    return page


def column(page, number: int) -> list[str]:
    return page.locator(f"#trials tbody tr td:nth-child({number})").all_inner_texts()


def test_all_rows_are_there_and_the_static_pages_give_way(table):
    assert "40 of 40 trials, page 1 of 2" in table.locator("#found").inner_text()
    assert not table.locator("#pages").is_visible()
    table.click("#next")
    assert table.locator("#trials tbody tr").count() == 15


def test_filtering_by_outcome_and_text_counts_what_the_data_has(table, site):
    values = json.loads((site.path / "data" / "trials-000.json").read_bytes())["values"]
    table.select_option("#f-outcome", "failure")
    wanted = values["outcome"].count("failure")
    assert f"{wanted} of 40" in table.locator("#found").inner_text()
    assert all("failure" in text for text in column(table, 7))
    table.fill("#f-q", "T3 base")
    both = [
        n for n, (task, variant, outcome) in enumerate(
            zip(values["task"], values["variant"], values["outcome"], strict=True)
        ) if "t3" in f"{values['trial_id'][n]} {task} {variant}".lower() and variant == "base" and outcome == "failure"
    ]  # fmt: skip
    assert f"{len(both)} of 40" in table.locator("#found").inner_text()


def test_sorting_turns_round_and_keeps_what_is_missing_last(table):
    table.click("th[data-key='task'] button")
    tasks = column(table, 4)
    assert tasks == sorted(tasks)
    assert table.get_attribute("th[data-key='task']", "aria-sort") == "ascending"
    table.click("th[data-key='task'] button")
    assert table.get_attribute("th[data-key='task']", "aria-sort") == "descending"
    table.click("th[data-key='outcome'] button")
    table.click("th[data-key='outcome'] button")
    table.click("#next")
    assert "none" in column(table, 7)[-1]


def test_a_filtered_table_can_be_linked_to(table, opened):
    table.select_option("#f-variant", "base")
    table.click("th[data-key='seconds'] button")
    again = opened(table.url).page
    again.wait_for_selector("#tool[data-ready]", state="attached")
    assert again.input_value("#f-variant") == "base"
    assert again.get_attribute("th[data-key='seconds']", "aria-sort") == "ascending"
    assert "20 of 40" in again.locator("#found").inner_text()


def test_a_filter_that_fits_nothing_says_so(table):
    table.fill("#f-q", "no such trial")
    assert "No trial fits" in table.locator("#trials tbody").inner_text()


def test_hostile_names_are_text_in_the_table_too(opened, hostile):
    watched = opened(uri(hostile.path, "trials.html"))
    watched.page.wait_for_selector("#tool[data-ready]", state="attached")
    text = watched.page.locator("#trials").inner_text()
    assert "<script>" in text
    assert "⟨U+202E⟩evil" in text
    assert watched.page.title() != "owned"
    assert watched.quiet()
