"""`labaudit analyze` and `labaudit compare` as a user calls them: what they print, write and end with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from labaudit.analysis import analyse_run
from labaudit.cli import labaudit
from labaudit.core.canonical import canonical_bytes
from labaudit.errors import BadInput
from labaudit.store.run_folder import RunFolder
from tests.unit.analysis.made_up import COST, SUCCESS, Trial, hook, tool_call, write_run


def trials() -> list[Trial]:
    made = []
    for task in range(12):
        for repl in range(2):
            for place, variant in enumerate(("base", "drop", "other")):
                wins = int((task + repl * place) % (2 + place) == 0)
                steps = [
                    event
                    for step in range(2 + wins)
                    for event in (
                        hook(2 * step, "agent_step_start", step_index=step),
                        tool_call(2 * step + 1, "search" if step else f"open_{variant}", step_index=step),
                    )
                ]
                metrics = {"success": wins, "cost": 1 + task * 0.25 + place * 0.1}
                status = "lost" if (task, repl, variant) == (3, 1, "drop") else "included"
                made.append(
                    Trial(variant, f"task {task:02}", repl, metrics=metrics, hooks=steps, status=status, started=task)
                )
    return made


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    options: dict[str, Any] = {"variants": ("drop", "other"), "metrics": (SUCCESS, COST), "secondary": ["cost"]}
    return write_run(tmp_path / ".lab/runs/run-x", trials(), replications=2, **options)


@pytest.fixture
def sealed(run: RunFolder) -> RunFolder:
    analyse_run(run)
    run.manifest.write_bytes(b"{}")
    return run


def call(run: RunFolder, *arguments: str) -> Result:
    return CliRunner().invoke(labaudit, [*arguments, "--lab-dir", str(run.path.parents[1])], catch_exceptions=True)


def snapshot(run: RunFolder) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in run.path.rglob("*") if path.is_file()}


def test_analyze_writes_an_unsealed_run_and_says_what_it_found(run: RunFolder) -> None:
    result = call(run, "analyze", "latest")
    assert result.exit_code == 0
    assert run.summary.is_file()
    assert "71 included, 0 excluded, 1 lost" in result.stdout
    assert "drop / success (primary)" in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_analyze_of_a_sealed_run_that_follows_from_its_trials_ends_with_0_and_changes_nothing(
    sealed: RunFolder,
) -> None:
    before = snapshot(sealed)
    result = call(sealed, "analyze", "run-x", "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert document["agrees"] is True
    assert {file["status"] for file in document["files"]} == {"equal"}
    assert snapshot(sealed) == before


@pytest.mark.parametrize(
    ("name", "old", "new", "place"),
    [
        ("comparisons.json", b'"n_tasks":12', b'"n_tasks":120', ".n_tasks: 120 stored, 12"),
        ("paired_diffs.jsonl", b'"variant_value":1', b'"variant_value":0', "line "),
        ("suspects.json", b'"alpha":0.05', b'"alpha":0.5', ".alpha: 0.5 stored, 0.05 recomputed"),
        ("summary.json", b'"lost":1', b'"lost":0', ".lost: 0 stored, 1 recomputed"),
    ],
)
def test_a_changed_result_is_found_and_named_with_its_place(
    sealed: RunFolder, name: str, old: bytes, new: bytes, place: str
) -> None:
    path = sealed.analysis / name
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    before = snapshot(sealed)
    result = call(sealed, "analyze", "run-x", "--json")
    differing = [file for file in json.loads(result.stdout)["files"] if file["status"] != "equal"]
    assert result.exit_code == 1
    assert [file["path"] for file in differing] == [name]
    assert differing[0]["status"] == "differs"
    assert place in differing[0]["detail"]
    assert snapshot(sealed) == before
    assert "does NOT follow" in call(sealed, "analyze", "run-x").stdout


def test_missing_extra_and_changed_parquet_files_are_found(sealed: RunFolder) -> None:
    sealed.exemplars.unlink()
    (sealed.analysis / "more.json").write_bytes(b"{}")
    sealed.trials_table.write_bytes(b"PAR1 is no table PAR1")
    result = call(sealed, "analyze", "run-x", "--json")
    found = {file["path"]: file["status"] for file in json.loads(result.stdout)["files"]}
    assert result.exit_code == 1
    assert (found["exemplars.json"], found["more.json"], found["trials.parquet"]) == (
        "missing", "unexpected", "differs",
    )  # fmt: skip


def test_a_parquet_file_of_another_writer_with_the_same_rows_is_no_contradiction(sealed: RunFolder) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pq.read_table(sealed.trials_table), sealed.trials_table, compression="snappy")
    result = call(sealed, "analyze", "run-x", "--json")
    found = {file["path"]: file["status"] for file in json.loads(result.stdout)["files"]}
    assert result.exit_code == 0
    assert found["trials.parquet"] == "same_content"


def test_another_last_digit_is_no_contradiction_and_another_ninth_one_is(sealed: RunFolder) -> None:
    document = json.loads(sealed.comparisons.read_bytes())
    number = document["comparisons"][0]["interval"]["high"]
    for factor, code, status in ((1 + 1e-14, 0, "same_content"), (1 + 1e-7, 1, "differs")):
        document["comparisons"][0]["interval"]["high"] = number * factor
        sealed.comparisons.write_bytes(canonical_bytes(document))
        result = call(sealed, "analyze", "run-x", "--json")
        found = {file["path"]: file["status"] for file in json.loads(result.stdout)["files"]}
        assert (result.exit_code, found["comparisons.json"]) == (code, status)


def test_another_spelling_of_the_same_document_is_told_apart_from_the_same_bytes(sealed: RunFolder) -> None:
    sealed.suspects.write_text(json.dumps(json.loads(sealed.suspects.read_bytes()), indent=1))
    found = {file["path"]: file["status"] for file in
             json.loads(call(sealed, "analyze", "run-x", "--json").stdout)["files"]}  # fmt: skip
    assert found["suspects.json"] == "same_content"


def test_a_changed_trial_contradicts_the_sealed_analysis(sealed: RunFolder) -> None:
    metrics = sealed.trial("drop.task 00.r0").metrics
    metrics.write_bytes(metrics.read_bytes().replace(b'"success":1', b'"success":0'))
    assert call(sealed, "analyze", "run-x").exit_code == 1


def test_out_gets_the_files_and_never_overwrites(sealed: RunFolder, tmp_path: Path) -> None:
    out = tmp_path / "again"
    before = snapshot(sealed)
    assert call(sealed, "analyze", "run-x", "--out", str(out)).exit_code == 0
    assert (out / "summary.json").read_bytes() == sealed.summary.read_bytes()
    assert (out / "diffs/drop.jsonl").read_bytes() == sealed.variant_diffs("drop").read_bytes()
    again = call(sealed, "analyze", "run-x", "--out", str(out))
    assert isinstance(again.exception, BadInput)
    assert again.exception.exit_code == 2
    assert snapshot(sealed) == before


def test_out_on_an_unsealed_run_leaves_the_run_alone(run: RunFolder, tmp_path: Path) -> None:
    assert call(run, "analyze", "latest", "--out", str(tmp_path / "out")).exit_code == 0
    assert not run.analysis.exists()
    assert (tmp_path / "out/trials.parquet").is_file()


def test_coverage_is_simulated_for_the_runs_own_size(run: RunFolder) -> None:
    result = call(run, "analyze", "latest", "--coverage", "--sets", "40", "--json")
    rows = json.loads(result.stdout)["rows"]
    assert {(row["tasks"], row["replicates"], row["sets"]) for row in rows} == {(12, 2, 40)}
    assert {row["effect"] for row in rows} == {"risk_diff", "mean_diff", "log_ratio", "median_diff"}
    shown = call(run, "analyze", "latest", "--coverage", "--sets", "40").stdout
    assert max(len(line) for line in shown.splitlines()) <= 80


def test_compare_prints_pairs_exemplars_suspects_and_diffs_within_80_columns(sealed: RunFolder) -> None:
    before = snapshot(sealed)
    result = call(sealed, "compare", "latest", "--baseline", "base", "--variant", "drop")
    assert result.exit_code == 0
    for heading in ("run-x: drop against base", "Pairs: ", "Exemplars for success", "Suspects: ", "Aligned diffs: 23"):
        assert heading in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= 80
    assert snapshot(sealed) == before


def test_compare_as_json_holds_the_whole_bundle(sealed: RunFolder) -> None:
    bundle = json.loads(call(sealed, "compare", "latest", "--variant", "drop", "--json").stdout)
    assert bundle["planned"] is True
    assert [one["id"] for one in bundle["comparisons"]] == ["drop/success", "drop/cost"]
    assert len(bundle["paired_diffs"]) == 12 * 2 * 2
    keys = [(row["task_id"], row["repl_idx"], row["variant"], row["metric"]) for row in bundle["paired_diffs"]]
    assert len(set(keys)) == len(keys)
    assert {one["variant"] for one in bundle["suspects"]["suspects"]} == {"drop"}
    assert bundle["diffs"][0]["granularity"] == "step"
    assert bundle["diffs"][0]["sequence"]["diff"]["first_divergence"]["kind"] == "changed"


def test_arms_that_the_plan_does_not_compare_get_no_p_value(sealed: RunFolder) -> None:
    arguments = ("compare", "latest", "--baseline", "drop", "--variant", "other")
    bundle = json.loads(call(sealed, *arguments, "--json").stdout)
    assert bundle["planned"] is False
    assert {one["role"] for one in bundle["comparisons"]} == {"unplanned"}
    assert [one["p"]["value"] for one in bundle["comparisons"]] == [None, None]
    assert {one["p"]["reason"]["code"] for one in bundle["comparisons"]} == {"not_in_plan"}
    assert all(one["estimate"] is not None for one in bundle["comparisons"])
    assert "The plan does not compare these two" in call(sealed, *arguments).stdout


def test_compare_writes_the_bundle_as_files(sealed: RunFolder, tmp_path: Path) -> None:
    assert call(sealed, "compare", "latest", "--variant", "drop", "--out", str(tmp_path / "b")).exit_code == 0
    names = {path.name for path in (tmp_path / "b").iterdir()}
    assert names == {"comparisons.json", "paired_diffs.jsonl", "diffs.jsonl", "exemplars.json", "suspects.json"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--variant", "nope"), "no variant 'nope'"),
        (("--baseline", "nope", "--variant", "drop"), "no variant 'nope'"),
        (("--variant", "base"), "both baseline and variant"),
        ((), "several variants"),
    ],
)
def test_wrong_names_are_the_users_error_with_the_known_ones(
    sealed: RunFolder, arguments: tuple[str, ...], words: str
) -> None:
    error = call(sealed, "compare", "latest", *arguments).exception
    assert isinstance(error, BadInput)
    assert words in str(error)
    assert "base, drop, other" in str(error)


def test_what_could_steer_a_terminal_is_shown_as_an_escape(tmp_path: Path) -> None:
    made = [Trial(v, "t\x1b[2J", metrics={"success": int(v == "base")}) for v in ("base", "drop")]
    made = [*made, *(Trial(v, "b", metrics={"success": 1}) for v in ("base", "drop"))]
    run = write_run(tmp_path / ".lab/runs/run-x", [_renamed(trial) for trial in made])
    shown = call(run, "compare", "latest").stdout
    assert "\x1b" not in shown
    assert "t\\x1b[2J" in shown


def _renamed(trial: Trial) -> Trial:
    class Named(Trial):
        @property
        def trial_id(self) -> str:
            return f"{self.variant}.{'x' if len(self.task) > 1 else self.task}.r0"

    return Named(trial.variant, trial.task, metrics=trial.metrics)


@pytest.mark.parametrize("command", ["analyze", "compare"])
def test_help_has_examples(command: str) -> None:
    shown = CliRunner().invoke(labaudit, [command, "--help"]).stdout
    assert shown.count("Example: labaudit") == 3


def test_long_names_still_fit_80_columns(tmp_path: Path) -> None:
    long = "a_very_long_name_" * 5
    metric = SUCCESS | {"name": f"metric_{long}"}
    made = [
        Trial(v, f"task_{long}{n}", metrics={f"metric_{long}": (n + len(v)) % 2, "cost": 10.0**n})
        for n in range(8)
        for v in ("base", f"variant_{long}")
    ]
    options: dict[str, Any] = {"variants": (f"variant_{long}",), "metrics": (metric, COST), "secondary": ["cost"]}
    run = write_run(tmp_path / ".lab/runs/run-x", made, **options)
    for arguments in (("compare", "latest"), ("analyze", "latest")):
        shown = call(run, *arguments)
        assert shown.exit_code == 0
        assert max(len(line) for line in shown.stdout.splitlines()) <= 80
