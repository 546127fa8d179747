"""Rows that repeat, have no name, or cannot be read: each is counted, named and shown."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from labaudit.errors import BadInput
from labaudit.importers.eval_zip import EvalZip, ZipBounds
from labaudit.importers.import_run import read_results
from labaudit.importers.protocol import ReadOptions
from labaudit.importers.results import ForeignResults
from labaudit.importers.source_files import SourceFiles


def imported(folder: Path, format_name: str, files: dict[str, Any], only: str | None = None) -> ForeignResults:
    root = folder / "results"
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return read_results(format_name, [root / only if only else root], SourceFiles(), ReadOptions())


def codes(results: ForeignResults) -> dict[str, int]:
    return {finding.code: finding.count for finding in results.findings}


def verdicts(results: ForeignResults) -> dict[str, str]:
    return {f"{trial.variant}/{trial.task_id}": trial.outcome for trial in results.trials}


def tb_row(name: str | None, task: str, resolved: bool) -> dict[str, Any]:
    return {"task_id": task, "is_resolved": resolved, **({"trial_name": name} if name else {})}


def test_two_rows_of_one_trial_in_one_list_leave_its_verdict_unknown(tmp_path: Path) -> None:
    listed = [tb_row("a.1", "a", True), tb_row("a.1", "a", False), tb_row("b.1", "b", True), tb_row("b.1", "b", True)]
    results = imported(tmp_path, "terminal-bench", {"ds/sub/run/results.json": {"results": listed}})
    assert verdicts(results) == {"sub/a": "missing", "sub/b": "success"}
    assert (codes(results)["conflicting_trial"], codes(results)["duplicate_trial"]) == (1, 1)


def test_rows_without_a_trial_name_are_rows_all_the_same(tmp_path: Path) -> None:
    listed = [tb_row(None, "a", True), tb_row(None, "b", False), tb_row(None, "c", True)]
    results = imported(tmp_path, "terminal-bench", {"ds/sub/run/results.json": {"results": listed}})
    assert verdicts(results) == {"sub/a": "success", "sub/b": "failure", "sub/c": "success"}


def test_entries_of_a_list_that_are_no_rows_are_counted(tmp_path: Path) -> None:
    document = {"results": [tb_row("a.1", "a", True), "junk", None]}
    assert codes(imported(tmp_path, "terminal-bench", {"ds/s/run/results.json": document}))["unreadable_row"] == 2
    with pytest.raises(BadInput, match="1 of its rows are no JSON objects"):
        imported(tmp_path, "table", {"t.json": [{"task": "a", "success": 1}, "x"]}, only="t.json")


def sample(name: str, value: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "epoch": 1, "scores": {"match": {"value": value}}, **more}


def log(samples: list[Any], **spec: Any) -> dict[str, Any]:
    return {"version": 2, "status": "success", "eval": {"task": "t", "model": "m", **spec}, "samples": samples}


def packed(document: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({**document, "samples": None}))
        for one in document["samples"]:
            archive.writestr(f"samples/{one['id']}_epoch_1.json", json.dumps(one))
    return out.getvalue()


def test_one_sample_under_two_uuids_is_one_trial(tmp_path: Path) -> None:
    twice = log([sample("a", "C", uuid="u1"), sample("a", "I", uuid="u2"), sample("b", "C", uuid="u3")])
    results = imported(tmp_path, "inspect", {"log.json": twice})
    assert verdicts(results) == {"m/a": "missing", "m/b": "success"}
    assert codes(results)["conflicting_trial"] == 1


def test_a_copy_of_a_log_is_no_second_submission(tmp_path: Path) -> None:
    one = log([sample("a", "C", uuid="u1")])
    results = imported(tmp_path, "inspect", {"log.json": one, "copy.json": one})
    assert (len(results.trials), codes(results)["duplicate_file"]) == (1, 1)


@pytest.mark.parametrize("uuid", [{"uuid": "u1"}, {}], ids=["uuid", "no uuid"])
def test_a_log_in_both_forms_tells_one_evaluation(tmp_path: Path, uuid: dict[str, str]) -> None:
    one = log([sample("a", "C", **uuid)], eval_id="e1")
    results = imported(tmp_path, "inspect", {"log.json": one, "log.eval": packed(one)})
    assert (verdicts(results), codes(results)["duplicate_trial"]) == ({"m/a": "success"}, 1)
    other = log([sample("a", "I", **uuid)], eval_id="e2")
    apart = imported(tmp_path / "x", "inspect", {"log.json": one, "other.json": other})
    assert verdicts(apart) == {"m/a": "success", "m #2/a": "failure"}


def test_samples_that_are_none_are_counted_and_damaged_ones_make_one_finding(tmp_path: Path) -> None:
    results = imported(tmp_path, "inspect", {"log.json": log([sample("a", "C"), "x", None])})
    assert codes(results)["unreadable_sample"] == 2
    data = bytearray(packed(log([sample(f"s{number}", "C") for number in range(9)])))
    for info in zipfile.ZipFile(io.BytesIO(bytes(data))).infolist()[2:]:
        data[info.header_offset + 30 + len(info.filename) + 3] ^= 0xFF
    damaged = imported(tmp_path / "z", "inspect", {"log.eval": bytes(data)})
    assert len(damaged.trials) == 1
    assert [finding.count for finding in damaged.findings if finding.code == "unreadable_sample"] == [8]


@pytest.mark.parametrize(
    ("format_name", "name", "content"),
    [
        ("inspect", "log.eval", packed(log([sample("a", "C")]))[:-40]),
        ("terminal-bench", "ds/sub/run/results.json", b'{"results": ['),
        ("swebench", "m.run.json", b'{"resolved_ids": ['),
        ("harbor", "job/a/result.json", b"{"),
    ],
)
def test_an_error_over_damaged_files_names_the_damage(
    tmp_path: Path, format_name: str, name: str, content: bytes
) -> None:
    with pytest.raises(BadInput, match=rf"here: results/{name} cannot be read: is no "):
        imported(tmp_path, format_name, {name: content})


def test_a_harbor_trial_without_a_task_is_named(tmp_path: Path) -> None:
    judged = {"verifier_result": {"rewards": {"reward": 1}}}
    files = {"job/a/result.json": judged, "job/b/result.json": {"task_name": "b", **judged}}
    results = imported(tmp_path, "harbor", files)
    assert (len(results.trials), codes(results)["row_without_name"]) == (1, 1)


@pytest.mark.parametrize(
    "files",
    [
        {
            "m.run1.json": {"resolved_ids": ["i1", "i2"], "unresolved_ids": ["i3"]},
            "m.run2.json": {"resolved_ids": ["i1"], "unresolved_ids": ["i2", "i3"]},
        },
        {
            f"logs/run_evaluation/r{run}/m/i{number}/report.json": {f"i{number}": {"resolved": resolved}}
            for run, number, resolved in (
                (1, 1, True), (2, 1, True), (1, 2, True), (2, 2, False), (1, 3, False), (2, 3, False),
            )
        },
    ],
    ids=["lists", "reports"],
)  # fmt: skip
def test_two_evaluations_of_one_model_do_not_overwrite_each_other(tmp_path: Path, files: dict[str, Any]) -> None:
    results = imported(tmp_path, "swebench", files)
    assert verdicts(results) == {"m/i1": "success", "m/i2": "missing", "m/i3": "failure"}
    assert (codes(results)["conflicting_trial"], codes(results)["duplicate_trial"]) == (1, 2)
    assert all(len(trial.sources) == 2 for trial in results.trials if "run1" in str(files))


def test_a_broken_line_takes_no_half_of_the_predictions(tmp_path: Path) -> None:
    lines = b'{"instance_id":"i1","model_name_or_path":"m","model_patch":""}\nnot json\n'
    results = imported(tmp_path, "swebench", {"p.jsonl": lines, "m.r.json": {"resolved_ids": ["i9"]}})
    assert verdicts(results) == {"m/i9": "success"}
    assert "unreadable_file" in codes(results)


def test_entries_of_one_name_on_a_leaderboard_stay_apart(tmp_path: Path) -> None:
    entries = [
        {"name": "X", "resolved": 100.0, "per_instance_details": {"i1": {"resolved": True}}},
        {"name": "X", "resolved": 0.0, "per_instance_details": {"i1": {"resolved": False}}},
    ]
    board = {"leaderboards": [{"name": "B", "results": entries}]}
    results = imported(tmp_path, "swebench", {"leaderboards.json": board})
    assert verdicts(results) == {"B: X/i1": "success", "B: X #2/i1": "failure"}


def test_a_small_archive_cannot_fill_memory_with_many_entries() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(8):
            archive.writestr(str(number), b"0" * (1 << 20))
    archive = EvalZip(out.getvalue(), "bomb.eval", ZipBounds(total_least=3 << 20))
    assert len(out.getvalue()) < 10_000
    for name in archive.names()[:3]:
        archive.read(name)
    with pytest.raises(BadInput, match="unfolds past"):
        archive.read("3")


def test_a_parquet_file_that_unfolds_too_far_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"task": pa.array(["t"] * 5000), "success": pa.array([1] * 5000)})
    path = tmp_path / "folded.parquet"
    pq.write_table(table, path)
    for name, said in (("MAX_CELLS", "holds 10000 cells"), ("MAX_UNFOLDED", "unfolds past 9999 bytes")):
        with monkeypatch.context() as patched:
            patched.setattr(f"labaudit.importers.table.{name}", 9999)
            with pytest.raises(BadInput, match=said):
                read_results("table", [path], SourceFiles(), ReadOptions())


def test_a_folder_that_cannot_be_listed_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root lists every folder, so the refusal of the system is played."""
    (tmp_path / "results" / "locked").mkdir(parents=True)
    real = __import__("os").scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr("os.scandir", scandir)
    with pytest.raises(BadInput, match="cannot be listed: Permission denied"):
        imported(tmp_path, "terminal-bench", {"ds/s/run/results.json": {"results": [tb_row("a.1", "a", True)]}})


def test_a_column_called_success_says_how_a_row_ended_whatever_stands_before_it(tmp_path: Path) -> None:
    rows = [
        {"task": "a", "variant": "v", "cost": 0.2, "success": 1},
        {"task": "b", "variant": "v", "cost": 1, "success": 0},
    ]
    results = imported(tmp_path, "table", {"t.json": rows}, only="t.json")
    assert {trial.task_id: trial.outcome for trial in results.trials} == {"a": "success", "b": "failure"}
