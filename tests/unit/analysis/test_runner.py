"""A whole run analysed: which files appear, that they are the same for the same trials, and what is refused."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from labaudit.analysis import analyse_run
from labaudit.analysis.runner import AnalysisRunner, write_analysis
from labaudit.core.canonical import is_canonical
from labaudit.errors import BadInput
from labaudit.records.analysis_summary import AnalysisSummary
from labaudit.records.comparisons import Comparisons
from labaudit.store.run_folder import RunFolder
from tests.make_run import RunPlan, make_run
from tests.unit.analysis.made_up import COST, SUCCESS, Trial, binary_pairs, write_run

FILES = {
    "summary.json", "comparisons.json", "paired_diffs.jsonl", "paired_diffs.parquet", "trials.parquet",
    "exemplars.json", "suspects.json", "diffs/drop_10p.jsonl",
}  # fmt: skip


def contents(run: RunFolder) -> dict[str, str]:
    return {
        path.relative_to(run.analysis).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in run.analysis.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def unsealed(tmp_path: Path) -> RunFolder:
    run = make_run(tmp_path, RunPlan(tasks=6, replications=2), sign=False).run
    run.manifest.unlink()
    return run


def test_every_file_of_the_layout_is_written_and_nothing_else_stays(unsealed: RunFolder) -> None:
    (unsealed.diffs).mkdir(parents=True, exist_ok=True)
    (unsealed.diffs / "left_over.jsonl").write_bytes(b"{}\n")
    analyse_run(unsealed)
    assert set(contents(unsealed)) == FILES


def test_json_files_are_canonical_and_are_the_records_they_claim_to_be(unsealed: RunFolder) -> None:
    analysis = analyse_run(unsealed)
    for path in (unsealed.summary, unsealed.comparisons, unsealed.exemplars, unsealed.suspects):
        assert is_canonical(path.read_bytes())
    for line in unsealed.paired_diffs.read_bytes().splitlines():
        assert is_canonical(line)
    assert AnalysisSummary.from_bytes(unsealed.summary.read_bytes()) == analysis.summary
    assert Comparisons.from_bytes(unsealed.comparisons.read_bytes()) == analysis.comparisons


def test_totals_are_counted_from_rows(unsealed: RunFolder) -> None:
    document = json.loads(unsealed.inclusion.read_bytes())
    document["totals"] = {"scheduled": 999, "included": 999, "excluded": 0, "lost": 0}
    unsealed.inclusion.write_text(json.dumps(document))
    totals = analyse_run(unsealed).summary.totals
    assert (totals.scheduled, totals.included, totals.lost) == (24, 23, 1)


def test_a_sealed_run_is_never_written_to(tmp_path: Path) -> None:
    run = make_run(tmp_path, sign=False).run
    before = contents(run)
    with pytest.raises(BadInput, match="sealed"):
        analyse_run(run)
    assert contents(run) == before


def test_the_same_trials_give_the_same_bytes_on_one_process_and_on_two(tmp_path: Path) -> None:
    trials = [
        Trial(variant, f"t{task:03}", repl, metrics={"success": (task * 7 + repl + len(variant)) % 2, "cost": task / 7})
        for task in range(70)
        for repl in range(2)
        for variant in ("base", "drop")
    ]
    run = write_run(tmp_path / "run", trials, metrics=(SUCCESS, COST), secondary=["cost"], replications=2)
    found = []
    for processes in (1, 2):
        target = RunFolder(tmp_path / str(processes))
        write_analysis(AnalysisRunner(run, processes=processes).run(), target)
        found.append(contents(target))
    assert found[0] == found[1]
    assert len(found[0]) == 8


def test_neither_the_order_of_trials_on_disk_nor_the_folders_name_shows(unsealed: RunFolder, tmp_path: Path) -> None:
    analyse_run(unsealed)
    copy = tmp_path / "renamed"
    shutil.copytree(unsealed.path, copy, ignore=shutil.ignore_patterns("trials", "analysis"))
    (copy / "trials").mkdir()
    for name in sorted(os.listdir(unsealed.trials), reverse=True):
        shutil.copytree(unsealed.trials / name, copy / "trials" / name)
    analyse_run(RunFolder(copy))
    assert contents(RunFolder(copy)) == contents(unsealed)


def test_a_folder_without_a_plan_or_without_trials_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"has no resolved_experiment\.json"):
        analyse_run(RunFolder(tmp_path))
    run = write_run(tmp_path / "run", binary_pairs([1], [0]))
    inclusion = json.loads(run.inclusion.read_bytes()) | {"rows": []}
    run.inclusion.write_text(json.dumps(inclusion))
    with pytest.raises(BadInput, match="no scheduled trial"):
        analyse_run(run)


def test_unreadable_metrics_name_the_file(tmp_path: Path) -> None:
    run = write_run(tmp_path, binary_pairs([1, 0], [0, 1]))
    run.trial("base.t0000.r0").metrics.write_bytes(b"{")
    with pytest.raises(BadInput) as caught:
        analyse_run(run)
    assert "base.t0000.r0/metrics.json" in str(caught.value)
