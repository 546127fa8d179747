"""Foreign results all the way: a run that verifies, grades that claim nothing unseen, a page that shows mismatches."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from labaudit.cli import labaudit
from labaudit.core.clock import FixedClock
from labaudit.errors import BadInput
from labaudit.importers.import_run import import_results
from labaudit.store.lab_folder import LabFolder

CASES = Path(__file__).resolve().parents[2] / "conformance" / "importers"
GRADED = {"isolation": "not_observed", "replay": "not_observed", "interpretability": "output", "provenance": "hashed"}


def call(*arguments: object) -> Result:
    return CliRunner().invoke(labaudit, [str(argument) for argument in arguments], catch_exceptions=True)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """One run of three formats each would be slow; the richest case stands for all."""
    folder = tmp_path_factory.mktemp("lab")
    source = CASES / "terminal_bench_two_trials_with_one_id" / "input"
    result = call("import", "terminal-bench", source, "--lab-dir", folder / ".lab", "--json", "--quiet")
    assert result.exit_code == 0, result.output
    return folder / ".lab", json.loads(result.stdout)


def test_an_imported_run_verifies_and_its_analysis_and_grades_recompute(imported: tuple[Path, dict[str, Any]]) -> None:
    lab, document = imported
    result = call("verify", document["path"], "--key", lab / "keys" / "labaudit.pub", "--recompute-analysis", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["verdict"] == "verified"


def test_the_grades_claim_nothing_that_was_not_seen(imported: tuple[Path, dict[str, Any]]) -> None:
    _, document = imported
    assert {name: document["grades"][name] for name in GRADED} == GRADED
    grades = json.loads((Path(document["path"]) / "grades.json").read_text())
    assert grades["integration_level"]["observed"] == "not_observed"
    present = {name for name, source in grades["evidence_sources"].items() if source["present"]}
    assert present == {"imported"}
    assert [caveat["id"] for caveat in grades["caveats"]] == ["imported_evidence"]


def test_a_policy_may_refuse_imported_evidence(imported: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    lab, document = imported
    policy = tmp_path / "observed_only.yaml"
    policy.write_text("version: 1\nname: observed_only\nrefuse_caveats: [imported_evidence]\n")
    result = call("verify", document["path"], "--key", lab / "keys" / "labaudit.pub", "--policy", policy)
    assert result.exit_code == 3, result.output


def test_every_record_says_that_it_is_imported(imported: tuple[Path, dict[str, Any]]) -> None:
    run = Path(imported[1]["path"])
    for trial in sorted((run / "trials").iterdir()):
        told = json.loads((trial / "imported.json").read_text())
        assert (told["evidence"], told["format"]) == ("imported", "terminal-bench")
        assert told["tool"] == {"name": "terminal-bench", "version": "0.2.13"}
        assert json.loads((trial / "trial_record.json").read_text())["evidence_origin"] == "imported"
        assert set(json.loads((trial / "metrics.json").read_text())["sources"].values()) == {"imported"}
        record = json.loads((trial / "run_record.json").read_text())
        assert record["provenance"]["config"]["evidence"] == "imported"


def test_every_source_file_is_kept_with_its_digest(imported: tuple[Path, dict[str, Any]]) -> None:
    run = Path(imported[1]["path"])
    report = json.loads((run / "import_report.json").read_text())
    source = CASES / "terminal_bench_two_trials_with_one_id"
    for entry in report["sources"]:
        stored = (run / "artifacts" / "sha256" / entry["sha256"]).read_bytes()
        assert stored == (source / entry["name"]).read_bytes()


def test_no_file_of_the_run_names_a_place_on_this_machine(imported: tuple[Path, dict[str, Any]]) -> None:
    run = Path(imported[1]["path"])
    place = str(CASES.parents[1]).encode()
    named = [path for path in run.rglob("*") if path.is_file() and place in path.read_bytes()]
    assert named == []


def test_the_contract_records_pass_their_check(imported: tuple[Path, dict[str, Any]]) -> None:
    result = call("contract", "check", imported[1]["path"], "--json")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["errors"], report["records"]["run"]) == (0, 0, 6)


def test_the_first_page_shows_every_mismatch(imported: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    lab, document = imported
    built = call("site", document["path"], "--out", tmp_path / "site", "--lab-dir", lab)
    assert built.exit_code == 0, built.output
    page = re.sub(r"\s+", " ", (tmp_path / "site" / "index.html").read_text(encoding="utf-8"))
    mismatches = [item["sentence"] for item in document["findings"] if item["severity"] == "mismatch"]
    assert len(mismatches) == 3
    for sentence in mismatches:
        assert sentence.replace("'", "&#39;") in page
    assert "These results were imported" in page


@pytest.mark.parametrize(
    ("case", "comparability"),
    [
        ("terminal_bench_two_submissions", "descriptive"),
        ("inspect_two_models", "descriptive"),
        ("harbor_job", "not_comparable"),
        ("swebench_leaderboard", "descriptive"),
        ("table_csv", "descriptive"),
    ],
)
def test_each_format_gives_a_run_that_verifies_with_comparability_capped(
    case: str, comparability: str, tmp_path: Path
) -> None:
    expected = json.loads((CASES / case / "expected.json").read_text())
    source = CASES / case / "input"
    paths = sorted(source.iterdir()) if expected["format"] == "table" else [source]
    maps = [part for key, column in expected.get("map", {}).items() for part in ("--map", f"{key}={column}")]
    result = call("import", expected["format"], *paths, *maps, "--lab-dir", tmp_path / ".lab", "--json", "--quiet")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["grades"]["comparability"] == comparability
    assert document["totals"]["scheduled"] == expected["trials"]
    verified = call("verify", document["path"], "--key", tmp_path / ".lab" / "keys" / "labaudit.pub")
    assert verified.exit_code == 0, verified.output


def test_two_imports_of_the_same_files_give_the_same_plan_and_trials(tmp_path: Path) -> None:
    source = [CASES / "terminal_bench_two_submissions" / "input"]
    runs = []
    for name in ("one", "two"):
        clock = FixedClock(datetime(2026, 1, 1, tzinfo=UTC))
        runs.append(import_results("terminal-bench", source, LabFolder(tmp_path / name), clock=clock).run)
    first, second = (
        {path.relative_to(run.path): path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
        for run in runs
    )
    assert first == second


def test_a_baseline_may_be_chosen_and_an_unknown_one_is_named(tmp_path: Path) -> None:
    source = [CASES / "terminal_bench_two_submissions" / "input"]
    chosen = import_results("terminal-bench", source, LabFolder(tmp_path / "lab"), baseline="beta")
    assert chosen.plan.resolved.baseline.id == "beta"
    with pytest.raises(BadInput, match="no variant is called"):
        import_results("terminal-bench", source, LabFolder(tmp_path / "lab"), baseline="gamma")


def test_out_puts_the_sealed_run_elsewhere_and_does_not_overwrite(tmp_path: Path) -> None:
    source = CASES / "harbor_job" / "input"
    arguments = ("import", "harbor", source, "--lab-dir", tmp_path / ".lab", "--out", tmp_path / "mine", "--quiet")
    assert call(*arguments).exit_code == 0
    verified = call("verify", tmp_path / "mine", "--key", tmp_path / ".lab" / "keys" / "labaudit.pub")
    assert verified.exit_code == 0, verified.output
    assert isinstance(call(*arguments).exception, BadInput)


def test_a_source_that_changes_during_the_import_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from labaudit.importers import import_run

    source = tmp_path / "input"
    shutil.copytree(CASES / "harbor_job" / "input", source)
    real = import_run.plan_import

    def meddling(*arguments: Any, **options: Any) -> Any:
        (source / "job" / "result.json").write_text("{}")
        return real(*arguments, **options)

    monkeypatch.setattr(import_run, "plan_import", meddling)
    with pytest.raises(BadInput, match="changed while"):
        import_results("harbor", [source], LabFolder(tmp_path / "lab"))


def test_the_export_keeps_what_is_missing_visible(imported: tuple[Path, dict[str, Any]]) -> None:
    lab, document = imported
    result = call("export", "every-eval-ever", document["run_id"], "--lab-dir", lab, "--organization", "Made-up Lab")
    assert result.exit_code == 0, result.output
    (exported,) = json.loads(result.stdout)
    required = {"schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info"}
    assert exported.keys() == required | {"eval_library", "evaluation_results"}
    assert exported["eval_library"] == {"name": "terminal-bench", "version": "0.2.13"}
    success = exported["evaluation_results"][0]
    assert success["score_details"]["score"] == pytest.approx(3 / 5), "the unknown verdict is in no denominator"
    assert success["score_details"]["details"] == {"missing_invalid": "1", "values_missing": "1"}
    assert success["metric_config"]["lower_is_better"] is False
    details = exported["source_metadata"]["additional_details"]
    assert (details["labaudit_evidence"], details["labaudit_import_mismatches"]) == ("imported", "3")


def test_only_a_finished_run_is_exported(tmp_path: Path) -> None:
    source = [CASES / "harbor_job" / "input"]
    run = import_results("harbor", source, LabFolder(tmp_path / "lab")).run
    result = call("export", "every-eval-ever", run.path, "--organization", "x")
    assert isinstance(result.exception, BadInput)


def test_an_import_that_breaks_off_leaves_no_half_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from labaudit.importers import import_run

    real, written = import_run.write_trial, []

    def interrupted(*arguments: Any) -> None:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(real(*arguments))

    monkeypatch.setattr(import_run, "write_trial", interrupted)
    lab = LabFolder(tmp_path / "lab")
    with pytest.raises(KeyboardInterrupt):
        import_results("harbor", [CASES / "harbor_job" / "input"], lab)
    assert lab.run_ids() == []
    assert lab.registry.read_bytes().count(b"\n") == 1, "that it was begun stays on record"


@pytest.mark.acceptance
def test_3500_trials_are_imported_in_under_20_seconds_of_cpu(tmp_path: Path) -> None:
    from benchmarks.bench_importers import cpu, make_results

    make_results(tmp_path / "in")
    seconds = cpu(lambda: import_results("terminal-bench", [tmp_path / "in"], LabFolder(tmp_path / "lab")))
    assert seconds < 20
