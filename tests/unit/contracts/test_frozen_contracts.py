"""A frozen contract changes only with a new version, and no text claims more than visibility."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from labaudit.attest.run_reader import RunFacts
from labaudit.attest.statements import evidence_predicate
from labaudit.contracts import frozen
from labaudit.contracts.a2a.meaning import HANDOFF_MEANINGS, MEANINGS
from labaudit.contracts.a2a.review import FORBIDDEN_PHRASES
from labaudit.contracts.record_check import RecordCheck
from labaudit.contracts.rules.book import BOOK

TOP = Path(__file__).resolve().parents[3]


def test_every_frozen_contract_still_means_what_its_version_says() -> None:
    assert frozen.changed_contracts() == [], "a new version, an ADR and an issue of its own: see CONTRIBUTING.md"


def test_the_frozen_names_are_those_of_the_change_rule() -> None:
    names = {row.name for row in frozen.frozen_contracts()}
    assert names >= {"task", "run_record", "score_record", "pipeline_order", "scenario", "k1_a_handoff_v1"}
    assert frozen.current_digests().keys() == names


def test_a_changed_rule_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen, "BOOK", BOOK[:-1])
    assert frozen.changed_contracts() == ["rules"]


def test_a_changed_schema_is_noticed_and_a_changed_description_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    real = frozen.read_schema

    def described(name: str) -> bytes:
        return real(name).replace(b'"description": "', b'"description": "Now: ')

    monkeypatch.setattr(frozen, "read_schema", described)
    assert frozen.changed_contracts() == []
    monkeypatch.setattr(frozen, "read_schema", lambda name: real(name).replace(b'"evaluatorId"', b'"evaluatorID"'))
    assert frozen.changed_contracts() == ["score_record"]


def test_a_changed_order_of_the_pipeline_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen, "PIPELINE_ORDER", frozen.PIPELINE_ORDER[::-1])
    assert frozen.changed_contracts() == ["pipeline_order"]


def test_a_changed_scenario_mechanism_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from labaudit.contracts.scenarios import executor

    monkeypatch.setattr(executor, "read_path", lambda value, path, named: None)
    assert frozen.changed_contracts() == ["scenario"]


def test_the_change_rule_is_in_the_contributing_guide() -> None:
    text = (TOP / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("## Changing a contract")[2].partition("\n## ")[0]
    for word in ("Task", "RunRecord", "ScoreRecord", "pipeline", "scenario", "issue"):
        assert word in section


def texts() -> list[Path]:
    """Pages, docs and templates; Python too, because pages are written by it."""
    found = [*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md"), *(TOP / "labaudit").rglob("*.py")]
    return found + [path for path in (TOP / "site_templates").rglob("*") if path.suffix in (".html", ".js", ".j2")]


def claims(text: str) -> list[str]:
    plain = re.sub(r"[\s\-_]+", " ", text.lower())
    return [phrase for phrase in FORBIDDEN_PHRASES if phrase in plain]


# These name the phrases in order to forbid them.
FORBIDS = {"labaudit/contracts/a2a/review.py", "CONTRIBUTING.md", "SECURITY.md", "docs/a2a.md"}


def test_no_page_and_no_doc_claims_more_than_visibility() -> None:
    files = texts()
    assert len(files) > 50
    found = {str(path.relative_to(TOP)): claims(path.read_text(encoding="utf-8")) for path in files}
    assert {name: said for name, said in found.items() if said and name not in FORBIDS} == {}


def test_the_search_finds_the_phrases_in_any_spelling() -> None:
    assert claims("Delegation-\n verified!") == ["delegation verified"]
    assert claims("the route  resolved") == ["route resolved"]


def test_every_handoff_flag_has_both_limits_and_they_travel_with_the_attestation() -> None:
    assert {row.field for row in HANDOFF_MEANINGS} == {
        *("handoff.visible", "handoff.source_kind", "handoff.task_ref_visible", "handoff.message_ref_visible")
    }
    facts = RunFacts(
        manifest={"run_tree": {"size": 3, "root": "0" * 64}},
        manifest_sha256="0" * 64,
        resolved={},
        inclusion={},
        grades={"evidence_sources": {}},
        summary={},
        started_at=None,
        digests={"grades.json": "0" * 64},
        documents={},
        contract_files={"a2a_events.jsonl": 2, "run_record.json": 3},
    )
    attributes = {item["attribute"]: item["conditions"] for item in evidence_predicate(facts)["attributes"]}
    assert attributes["CONTRACT_A2A_EVENTS"]["limits"] == [row.as_json() for row in HANDOFF_MEANINGS]
    assert (attributes["CONTRACT_A2A_EVENTS"]["covered"], attributes["CONTRACT_A2A_EVENTS"]["total"]) == (2, 3)
    assert "CONTRACT_SCORE_RECORDS" not in attributes, "what no trial has is not asserted"
    assert [row["name"] for row in attributes["CONTRACT_RUN_RECORD"]["contracts"]] == [
        "run_record",
        "rules",
        "scenario",
    ]


def test_the_pages_show_every_rule_and_every_limit_as_the_code_has_them() -> None:
    contracts = (TOP / "docs" / "contracts.md").read_text(encoding="utf-8")
    for row in BOOK:
        assert f"| {row.id} | {row.about} | {row.severity} | {row.sentence} |" in contracts
    a2a = (TOP / "docs" / "a2a.md").read_text(encoding="utf-8")
    for meaning in MEANINGS:
        assert f"| `{meaning.field}` | {meaning.may_imply} | {meaning.must_not_imply} |" in a2a


def test_the_module_of_the_guide_runs_and_its_records_keep_their_contract() -> None:
    guide = (TOP / "docs" / "module-guide.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(guide.partition("```python\n")[2].partition("```")[0], names)
    module = names["MODULE"]
    task = {"id": "t", "name": "t", "type": "shout", "input": "hi", "expected": "HI!", "metadata": {}}
    run = module.runner.execute(task, {})
    scores = module.evaluator.evaluate(run, task)
    check = RecordCheck()
    for value in (task, run, *scores):
        check.add(value, "record")
    report = check.finish()
    assert (report.errors, report.warnings) == (0, 0), report.as_json()
    assert [score["value"] for score in scores] == [1.0]


def calls_of(function: Any) -> list[str]:
    """Names of the functions that a function calls, in the order of its lines."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    calls.sort(key=lambda node: (node.lineno, node.col_offset))
    return [getattr(node.func, "id", getattr(node.func, "attr", "")) for node in calls]


def test_the_pipeline_works_in_the_frozen_order() -> None:
    from labaudit.pipeline import run

    steps = {
        "resolve": "resolve_experiment",
        "schedule": "create_run",
        "trials": "execute",
        "trial grades": "include_trials",
        "inclusion": "include_trials",
        "analysis": "analyse_run",
        "run grades": "grade_run",
        "sbom": "make_sboms",
        "attestation summary": "seal_run",
        "manifest": "seal_run",
        "checkpoint and signatures": "seal_run",
    }
    assert tuple(steps) == frozen.PIPELINE_ORDER
    told = [*calls_of(run.run_experiment), *calls_of(run._run_trials), *calls_of(run.finish_run)]
    places = [told.index(name) for name in steps.values()]
    assert places == sorted(places)
