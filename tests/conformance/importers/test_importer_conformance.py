"""Each folder here holds synthetic files of one format and what an import must say of them; `_fail` must be refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from labaudit.errors import BadInput
from labaudit.importers.import_run import read_results
from labaudit.importers.protocol import ReadOptions
from labaudit.importers.source_files import SourceFiles
from labaudit.importers.totals import total_findings

HERE = Path(__file__).resolve().parent
CASES = sorted(path.name for path in HERE.iterdir() if (path / "expected.json").is_file())


def read(case: str) -> tuple[dict[str, Any], Any]:
    expected = json.loads((HERE / case / "expected.json").read_text(encoding="utf-8"))
    folder = HERE / case / "input"
    paths = sorted(folder.iterdir()) if expected["format"] == "table" else [folder]
    options = ReadOptions(mapping=expected.get("map", {}))
    return expected, read_results(expected["format"], paths, SourceFiles(), options)


@pytest.mark.parametrize("case", [case for case in CASES if not case.endswith("_fail")])
def test_the_files_give_the_rows_totals_and_findings_that_are_expected(case: str) -> None:
    expected, results = read(case)
    assert len(results.trials) == expected["trials"]
    assert sorted(results.variants) == sorted(expected["variants"])
    assert len({trial.task_id for trial in results.trials}) == expected["tasks"]
    assert Counter(trial.outcome for trial in results.trials) == expected["outcomes"]
    assert Counter(total.status for total in results.totals) == expected["totals"]
    findings = {finding.code for finding in (*results.findings, *total_findings(results))}
    assert sorted(findings - {"metric_never_told"}) == expected["findings"]


@pytest.mark.parametrize("case", [case for case in CASES if case.endswith("_fail")])
def test_what_cannot_be_imported_is_refused_with_a_sentence(case: str) -> None:
    expected = json.loads((HERE / case / "expected.json").read_text(encoding="utf-8"))
    with pytest.raises(BadInput) as caught:
        read(case)
    assert caught.value.what == expected["error"]


@pytest.mark.parametrize("case", [case for case in CASES if not case.endswith("_fail")])
def test_a_missing_value_has_a_cause_and_is_never_a_zero(case: str) -> None:
    _, results = read(case)
    primary = results.metrics[0].name
    for trial in results.trials:
        assert (primary in trial.metrics) != (primary in trial.missing)
        assert (trial.outcome in ("success", "failure")) == (primary in trial.metrics)


def test_every_format_has_cases_and_every_file_says_that_it_is_made_up() -> None:
    formats = {json.loads((HERE / case / "expected.json").read_text())["format"] for case in CASES}
    assert formats == {"terminal-bench", "inspect", "harbor", "swebench", "table"}
