"""Each folder here is a run in short form and what its analysis must say; `_fail` must be refused.

Numbers in `expected.json` are given to the digits that their source prints (four where nothing else is said).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from labaudit.analysis import analyse_run
from labaudit.errors import BadInput
from tests.unit.analysis.made_up import Trial, broken_files, write_run

HERE = Path(__file__).resolve().parent
CASES = sorted(path.name for path in HERE.iterdir() if (path / "case.json").is_file())


def found_at(value: Any, place: str) -> Any:
    """`arms.baseline.pass_k.0.k` in nested objects and lists; warnings by their codes."""
    for part in place.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return [item["code"] for item in value] if place == "warnings" else value


def read_case(case: str) -> tuple[list[Trial], dict[str, Any], dict[str, Any]]:
    document = json.loads((HERE / case / "case.json").read_bytes())
    trials = [Trial(variant, task, repl, metrics=metrics) for variant, task, repl, metrics in document["trials"]]
    return trials, document["options"], json.loads((HERE / case / "expected.json").read_bytes())


@pytest.mark.parametrize("case", [name for name in CASES if not name.endswith("_fail")])
def test_the_analysis_says_what_the_case_expects(case: str, tmp_path: Path) -> None:
    trials, options, expected = read_case(case)
    run = write_run(tmp_path, trials, **options)
    analyse_run(run)
    assert broken_files(run) == []
    stored = {one["id"]: one for one in json.loads(run.comparisons.read_bytes())["comparisons"]}
    for name, places in expected.items():
        for place, wanted in places.items():
            found = found_at(stored[name], place)
            # Half a unit of the fourth digit, and a hair for a printed 5.
            near = pytest.approx(wanted, abs=5.001e-5) if isinstance(wanted, float) else wanted
            assert found == near, place


@pytest.mark.parametrize("case", [name for name in CASES if name.endswith("_fail")])
def test_the_run_is_refused_with_its_reason(case: str, tmp_path: Path) -> None:
    trials, options, expected = read_case(case)
    options["tasks"] = [{"id": "x"}]
    outside = tmp_path / "inner" / "deep"
    run = write_run(outside, [], **options)
    document = json.loads(run.inclusion.read_bytes())
    document["rows"] = [
        {"index": 0, "trial_id": trial.task, "variant_id": trial.variant, "task_id": trial.task, "repl_idx": 0}
        for trial in trials
    ]
    run.inclusion.write_text(json.dumps(document))
    with pytest.raises(BadInput, match=expected["error"]) as caught:
        analyse_run(run)
    assert caught.value.exit_code == expected["exit_code"]
