"""An imported run is a function of the files that it keeps, and a change on either side shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from labaudit.cli import labaudit
from labaudit.errors import BadInput, Contradiction
from labaudit.importers.import_run import import_results
from labaudit.importers.protocol import ReadOptions
from labaudit.importers.recheck import recheck_import
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder

CASES = Path(__file__).resolve().parents[2] / "conformance" / "importers"
GOOD = sorted(path.name for path in CASES.iterdir() if path.is_dir() and not path.name.endswith("_fail"))


def imported(case: str, lab: Path, baseline: str | None = None) -> RunFolder:
    expected = json.loads((CASES / case / "expected.json").read_text())
    source = CASES / case / "input"
    paths = sorted(source.iterdir()) if expected["format"] == "table" else [source]
    options = ReadOptions(mapping=expected.get("map", {}))
    return import_results(expected["format"], paths, LabFolder(lab), options=options, baseline=baseline).run


@pytest.mark.parametrize("case", [case for case in GOOD if case != "__pycache__"])
def test_every_import_follows_from_its_own_kept_files(case: str, tmp_path: Path) -> None:
    assert recheck_import(imported(case, tmp_path / "lab")) == []


def test_a_changed_value_a_changed_total_and_a_changed_plan_are_found(tmp_path: Path) -> None:
    run = imported("terminal_bench_two_submissions", tmp_path / "lab", baseline="beta")
    trial = next(iter(run.trial_folders()))
    trial.metrics.write_bytes(trial.metrics.read_bytes().replace(b'"duration_s":90', b'"duration_s":80', 1))
    report = run.import_report.read_bytes()
    run.import_report.write_bytes(report.replace(b'"published":0.', b'"published":1.', 1))
    assert recheck_import(run) == [
        f"trials/{trial.trial_id}/metrics.json is not what the kept files give",
        "import_report.json has other totals than the kept files give",
    ]
    run.resolved.write_bytes(run.resolved.read_bytes() + b" ")
    assert recheck_import(run)[0].startswith("resolved_experiment.json")


def test_a_changed_source_is_a_contradiction_before_anything_is_compared(tmp_path: Path) -> None:
    run = imported("harbor_job", tmp_path / "lab")
    kept = next(path for path in (run.artifacts_folder / "sha256").iterdir() if b'"task_name"' in path.read_bytes())
    kept.chmod(0o644)
    kept.write_bytes(kept.read_bytes() + b" ")
    with pytest.raises(Contradiction):
        recheck_import(run)


@pytest.mark.parametrize("name", ["../../outside.json", "input/../../outside.json", "elsewhere/x.json", "/etc/x"])
def test_a_report_from_a_stranger_cannot_write_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    run = imported("harbor_job", tmp_path / "lab")
    report = json.loads(run.import_report.read_bytes())
    report["sources"][0]["name"] = name
    run.import_report.write_text(json.dumps(report))
    with pytest.raises(BadInput, match="outside of its roots"):
        recheck_import(run)


def test_two_given_folders_of_one_name_stay_apart(tmp_path: Path) -> None:
    for place in ("a", "b"):
        folder = tmp_path / place / "logs"
        folder.mkdir(parents=True)
        log = json.loads((CASES / "inspect_two_models" / "input" / "one.json").read_text())
        log["eval"]["model"] = f"made-up/{place}"
        (folder / "log.json").write_text(json.dumps(log))
    paths = [tmp_path / place / "logs" for place in ("a", "b")]
    run = import_results("inspect", paths, LabFolder(tmp_path / "lab")).run
    report = json.loads(run.import_report.read_bytes())
    assert [source["name"] for source in report["sources"]] == ["logs-2/log.json", "logs/log.json"]
    assert recheck_import(run) == []


def test_the_command_says_so_and_refuses_a_run_that_was_not_imported(tmp_path: Path) -> None:
    run = imported("harbor_job", tmp_path / "lab")
    result = CliRunner().invoke(labaudit, ["import-check", str(run.path), "--json"])
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"follows": True, "differences": []})
    run.import_report.unlink()
    assert isinstance(CliRunner().invoke(labaudit, ["import-check", str(run.path)]).exception, BadInput)
