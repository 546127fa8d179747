"""Small turns: hostile text made visible, numbers with units, positions with fixed decimals."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from labaudit.site import build_site
from labaudit.site.drawing import charts, figures
from labaudit.site.drawing.plain_text import excerpt, visible
from labaudit.site.pages.grade_rules import RULES


@pytest.mark.parametrize(
    "code", [0x1B, 0x00, 0x7F, 0x9B, 0xAD, 0x202E, 0x2066, 0x200B, 0x2028, 0xFEFF, 0xE0041, 0xD800]
)
def test_unseen_characters_are_shown_by_their_code(code):
    assert visible(f"a{chr(code)}b") == f"a⟨U+{code:04X}⟩b"


@pytest.mark.parametrize("text", ["plain", "tab\tand\nnewline", "ünïcode 漢字 💥 é", "עברית"])
def test_what_a_reader_can_see_is_left_alone(text):
    assert visible(text) == text


def test_an_excerpt_never_cuts_a_character_in_two():
    data = ("é" * 100).encode()
    assert excerpt(data, 51).text == "é" * 25
    assert excerpt(data, 51).cut


def test_binary_is_counted_and_not_shown():
    shot = excerpt(bytes(range(4)) * 0 + b"\0\1\2\3" * 500)
    assert (shot.kind, shot.text, shot.size) == ("binary", "", 2000)


def test_numbers_carry_a_true_minus_and_units():
    assert figures.signed(-0.1254) == "\u22120.125"
    assert figures.signed(0.5) == "+0.500"
    assert figures.number(1234567) == "1\u202f234\u202f567"
    assert figures.size(1536) == "1.5 KiB"
    assert figures.p_value(0.00001) == "< 0.0001"
    assert figures.number(float("nan")) == figures.number(None) == "not available"


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (-0.45, 0.2), (0.0, 0.001), (-1e6, 3.0), (-1e-9, 1e-9)])
def test_an_axis_has_a_few_round_ticks_within_its_range(low, high):
    plot = charts.forest(
        [{"label": "x", "href": "", "estimate": low, "low": low, "high": high, "favours": "undecided", "text": ""}]
    )
    assert plot is not None
    assert 1 <= len(plot.ticks) <= 8
    assert all(200 <= float(x) <= 620 for x, _ in plot.ticks)


def test_a_plot_without_numbers_is_no_plot():
    row = {"label": "x", "href": "", "estimate": None, "low": None, "high": None, "favours": "undecided", "text": ""}
    assert charts.forest([row]) is None
    assert charts.strip([]) is None


def test_the_table_of_rules_names_no_rule_that_grading_has_not():
    folder = Path(__file__).parents[3] / "labaudit" / "grading"
    used = {rule for path in folder.glob("*.py") for rule in re.findall(r'"([A-Z]\d\d)"', path.read_text("utf-8"))}
    known = {rule for rows in RULES.values() for rule, _ in rows}
    assert known <= used
    # One letter per scale, and each scale's rules are there from the first on.
    assert {rule[0] for rule in used - {"A00"}} == {rule[0] for rule in known}


def test_a_rule_that_the_table_does_not_know_is_shown_by_its_own_sentence(made, tmp_path, monkeypatch):
    without = tuple(row for row in RULES["isolation"] if row[0] != "I13")
    monkeypatch.setitem(RULES, "isolation", without)
    built = build_site([made.run.path], tmp_path / "site")
    page = (built.path / "grades.html").read_text("utf-8")
    assert 'id="I13"' in page
    assert "A rule that this version does not know." in page
    assert "size-limited tmpfs" in page


def test_a_range_without_ends_is_told_once():
    assert figures.interval(None, None) == "not available"
    assert figures.interval(-0.25, 0.5) == "\u22120.250 to +0.500"
    assert figures.interval(0.1, None) == "+0.100 to not available"
