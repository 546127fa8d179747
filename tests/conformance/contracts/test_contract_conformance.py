"""Each folder here holds records and the rules they break; `_fail` breaks its contract, the others keep it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from labaudit.cli import labaudit
from labaudit.contracts.file_check import check_paths
from labaudit.contracts.rules.book import BOOK

HERE = Path(__file__).resolve().parent
CASES = sorted(path.name for path in HERE.iterdir() if (path / "expected.json").is_file())


def expected(case: str) -> dict[str, list[str]]:
    return json.loads((HERE / case / "expected.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def records(case: str) -> Path:
    return next((HERE / case).glob("records.*"))


@pytest.mark.parametrize("case", CASES)
def test_the_records_break_exactly_the_rules_that_are_named(case: str) -> None:
    wanted = expected(case)
    report = check_paths([records(case)], kind=wanted.get("kind"))  # type: ignore[arg-type]
    assert report.unreadable == []
    found = {(finding.severity, finding.rule) for _, finding in report.findings}
    assert found == {("error", rule) for rule in wanted["errors"]} | {("warning", rule) for rule in wanted["warnings"]}
    assert report.exit_code == (1 if case.endswith("_fail") else 0)
    assert all(finding.path.startswith("$") and finding.message for _, finding in report.findings)


def test_every_rule_that_can_be_broken_by_a_record_is_broken_here() -> None:
    tried = {rule for case in CASES for severity in ("errors", "warnings") for rule in expected(case)[severity]}
    # K2 is about a run folder; tests/unit/contracts has one.
    assert {row.id for row in BOOK} - tried == {"K2"}


def test_the_command_says_the_same_as_the_library() -> None:
    ok, broken = records("seed_scores"), records("c2_unknown_target_fail")
    result = CliRunner().invoke(labaudit, ["contract", "check", str(ok), str(broken), "--json"])
    report = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (report["errors"], report["records"]) == (1, {"score": 3})
    assert report["findings"][0]["rule"] == "C2"
    assert report["findings"][0]["source"] == str(broken)


@pytest.mark.parametrize(("name", "text"), [("none.json", "[]"), ("none.jsonl", "\n")])
def test_a_file_without_records_is_said_to_have_shown_nothing(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    result = CliRunner().invoke(labaudit, ["contract", "check", str(tmp_path / name)])
    assert result.exit_code == 0
    assert "nothing was checked" in result.stderr


@pytest.mark.parametrize("text", ['{"id": NaN}', "{", "", "[1,]", "\ufeff{}", '{"id": 1} x'])
def test_what_is_no_json_is_exit_code_2(tmp_path: Path, text: str) -> None:
    path = tmp_path / "record.json"
    path.write_text(text, encoding="utf-8")
    assert CliRunner().invoke(labaudit, ["contract", "check", str(path)]).exit_code == 2
