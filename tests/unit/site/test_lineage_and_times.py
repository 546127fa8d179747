"""Relatives both ways, moments with their evidence, and what makes a run invalid by its own rules: all on the pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labaudit.core.digest import sha256_hex
from labaudit.site import build_site
from labaudit.site.drawing import figures
from labaudit.site.drawing.plain_text import between_tags
from labaudit.site.pages.first_lines import invalid_by_its_own_rules
from labaudit.site.pages.times import moments
from labaudit.site.reading.lineage import families
from labaudit.site.reading.published_run import read_run
from labaudit.store import atomic
from tests.make_run import MadeRun, RunPlan, make_run
from tests.unit.site.test_pages import Page


def child_of(parent: MadeRun, folder: Path, *, manifest: str | None = None) -> MadeRun:
    """A run whose sealed files call it a replay of the parent's first trial."""
    trial = json.loads(parent.run.inclusion.read_bytes())["rows"][0]["trial_id"]
    digest = manifest or sha256_hex(parent.run.manifest.read_bytes())
    named = {"run_id": parent.run.run_id, "trial_id": trial, "manifest_digest": f"sha256:{digest}"}
    lineage = {"kind": "replay", "mode": "steps", "parent": named, "selector": None, "set": {}}
    row = {"what": "event", "step_index": 3, "position": 7, "sentence": "<b>another</b> tool was called"}
    divergence = {"compared": 9, "total": 1, "divergences": [row]}

    def add(path: Path) -> None:
        atomic.write_json(path / "lineage.json", lineage)
        atomic.write_json(path / "divergence.json", divergence)

    return make_run(folder, RunPlan(tasks=1, lost=frozenset(), failures=frozenset()), before_seal=add)


def test_a_childs_page_names_its_parent_by_digest_and_every_divergence(made, tmp_path):
    child = child_of(made, tmp_path)
    built = build_site([child.run.path], tmp_path / "site")
    text = " ".join("".join(Page(built.front_page).text).split())
    assert f"a replay of trial {json.loads(made.run.inclusion.read_bytes())['rows'][0]['trial_id']}" in text
    assert sha256_hex(made.run.manifest.read_bytes()) in text
    assert "1 of 9 compared items diverge." in text
    assert "<b>another</b> tool was called" in text
    assert "The parent is not on this site" in text


def test_on_one_site_parent_and_child_lead_to_each_other(made, tmp_path):
    child = child_of(made, tmp_path)
    built = build_site([made.run.path, child.run.path], tmp_path / "site")
    root = built.path / "runs"
    above, below = (Page(root / run.run.run_id / "index.html") for run in (made, child))
    assert f"../../runs/{child.run.run_id}/index.html" in above.links
    assert any(f"runs/{made.run.run_id}/trials/" in link for link in below.links)
    assert "has the manifest digest" in "".join(below.text)
    trial = json.loads(made.run.inclusion.read_bytes())["rows"][0]["trial_id"]
    page = Page(root / made.run.run_id / "trials" / f"{trial}.html")
    assert any(child.run.run_id in link for link in page.links)


def test_a_parent_of_the_same_name_and_another_digest_is_no_parent(made, tmp_path):
    child = child_of(made, tmp_path, manifest="0" * 64)
    found = families([read_run(made.run.path), read_run(child.run.path)])
    assert found[made.run.run_id].children == []
    assert found[child.run.run_id].parent["state"] == "another"
    assert found[child.run.run_id].parent["href"] == ""


def test_a_run_without_relatives_says_that_others_may_exist(site):
    assert "others may exist" in "".join(Page(site.front_page).text)


@pytest.mark.parametrize("lineage", [{}, {"parent": 3}, {"parent": {"run_id": 4}}, {"kind": [], "parent": {}}])
def test_a_lineage_of_another_shape_is_none(made, lineage):
    run = read_run(made.run.path)
    run.lineage = lineage
    assert families([run])[run.run_id].parent is None


def test_the_registration_time_is_that_of_the_run_id_and_called_unwitnessed(made):
    run = read_run(made.run.path)
    rows = {row["what"]: row for row in moments(run, figures.moment("2026-11-18T09:30:01Z"))}
    assert rows["plan registered"]["when"] == "2026-11-18 09:30:00 UTC"
    assert rows["plan registered"]["evidence"] == "framework_events"
    assert "no third party" in rows["plan registered"]["how"]
    assert "fits the key" in rows["plan signed"]["how"]
    assert rows["plan signed"]["when"] == "no time"


def test_an_event_older_than_the_registration_takes_its_evidence_away(made):
    row = moments(read_run(made.run.path), figures.moment("2026-11-18T09:29:59Z"))[0]
    assert (row["evidence"], "an event is older" in row["how"]) == ("none", True)


def test_an_id_that_does_not_carry_the_plan_tells_no_registration(made):
    run = read_run(made.run.path)
    run.manifest = {**run.manifest, "resolved_digest": "sha256:" + "0" * 64}
    row, signed, *_ = moments(run, None)
    assert row["evidence"] == "none"
    assert signed["how"] == "No signed link names this plan."


def test_a_time_with_an_offset_is_shown_in_utc():
    assert figures.clock("2026-11-18T11:30:00+02:00") == "2026-11-18 09:30:00 UTC"


def test_one_excluded_trial_makes_the_first_lines_say_invalid(made):
    run = read_run(made.run.path)
    run.rows[0] = {**run.rows[0], "status": "excluded", "rule": "X1", "reason": "no manifest"}
    assert invalid_by_its_own_rules(run) == ["1 of 6 trials are excluded by rule X1: no manifest."]


def test_every_rule_that_is_met_names_a_file_and_its_digest(site):
    page = (site.path / "grades.html").read_text("utf-8")
    met = [row for row in page.split('<tr id="')[1:] if "is-met" in row.split("<tr ")[0]]
    assert len(met) > 15
    for row in met:
        assert '<code class="all">' in row.split("</tbody>")[0], row[:40]


def test_the_matrix_and_the_six_questions_stand_there_without_any_packet(site):
    page = Page(site.path / "contracts.html")
    assert {f"N{number}" for number in range(1, 8)} <= set(page.ids)
    assert "Is handoff a single bounded top-level surface?" in "".join(page.text)


def test_pass_at_k_and_who_measured_stand_beside_an_effect(site):
    text = (site.path / "variants" / "drop_10p.html").read_text("utf-8")
    assert "pass@k" in text
    assert '<span class="badge">framework_events</span></p>' in text


def test_text_between_tags_keeps_quotes_and_nothing_that_opens_a_tag():
    assert between_tags("{\"a\": '<b>&'}\u202e") == "{\"a\": '&lt;b&gt;&amp;'}⟨U+202E⟩"
