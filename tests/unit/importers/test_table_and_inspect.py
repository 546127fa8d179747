"""Tables by their mapping, Inspect's own reader beside ours, and the times that other tools write."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from labaudit.errors import BadInput
from labaudit.importers.duplicates import merge_duplicates
from labaudit.importers.import_run import read_results
from labaudit.importers.moments import moment_text, seconds_between
from labaudit.importers.protocol import ReadOptions
from labaudit.importers.results import ForeignResults, ForeignTrial
from labaudit.importers.source_files import SourceFiles
from labaudit.importers.table import cell_value
from labaudit.importers.totals import check_mean

CASES = Path(__file__).resolve().parents[2] / "conformance" / "importers"


def read(format_name: str, *paths: Path, **options: Any) -> ForeignResults:
    return read_results(format_name, list(paths), SourceFiles(), ReadOptions(**options))


def told(results: ForeignResults) -> list[tuple[Any, ...]]:
    return sorted((trial.variant, trial.task_id, trial.outcome, str(trial.metrics)) for trial in results.trials)


@pytest.mark.parametrize(
    ("cell", "value", "cause"),
    [
        ("", None, "missing"),
        ("N/A", None, "missing"),
        ("NaN", None, "nan"),
        ("inf", None, "invalid"),
        ("maybe", None, "invalid"),
        ("PASS", 1, None),
        ("incorrect", 0, None),
        (" 0.25 ", 0.25, None),
        ("1e999", None, "invalid"),
        (True, 1, None),
        (None, None, "missing"),
        (float("nan"), None, "nan"),
        ([1], None, "invalid"),
    ],
)
def test_a_cell_is_a_value_or_a_cause(cell: object, value: object, cause: str | None) -> None:
    assert cell_value(cell) == (value, cause)


def test_csv_jsonl_json_and_parquet_give_the_same_rows(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"task": f"q{n}", "variant": "v", "success": n % 2, "note": "made up"} for n in range(6)]
    (tmp_path / "t.csv").write_text("task,variant,success,note\n" + "".join(f"q{n},v,{n % 2},x\n" for n in range(6)))
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "t.json").write_text(json.dumps({"rows": rows}))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    found = [told(read("table", tmp_path / f"t.{kind}", mapping={"success": "success"})) for kind in ("csv", "jsonl")]
    found += [
        told(read("table", tmp_path / f"t.{kind}", mapping={"success": "success"})) for kind in ("json", "parquet")
    ]
    assert all(one == found[0] for one in found)
    (tmp_path / "bad.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:-30])
    with pytest.raises(BadInput, match="no Parquet"):
        read("table", tmp_path / "bad.parquet", mapping={"success": "success"})


def test_two_files_without_a_variant_column_are_two_variants(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text("task,success\na,1\nb,0\n")
    results = read("table", tmp_path / "one.csv", tmp_path / "two.csv", mapping={"success": "success"})
    assert sorted(results.variants) == ["one", "two"]


def test_a_binary_metric_with_other_values_is_a_mismatch(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("task,score\na,1\nb,0.5\n")
    results = read("table", tmp_path / "t.csv", mapping={"score:binary": "score"})
    assert "value_not_binary" in {finding.code for finding in results.findings}
    assert read("table", tmp_path / "t.csv", mapping={"score": "score"}).metrics[0].type == "continuous"


def trial(outcome: Any, value: object, original_id: str = "x") -> ForeignTrial:
    metrics = {} if value is None else {"success": value}
    missing: Any = {"success": "missing"} if value is None else {}
    return ForeignTrial("v", "t", original_id, (0,), outcome, metrics, missing, sources=(str(value),))  # type: ignore[arg-type]


def test_duplicates_that_agree_count_once_and_those_that_differ_have_no_verdict() -> None:
    from labaudit.importers.results import MetricDeclaration, Tool

    results = ForeignResults("f", None, Tool("t"), [MetricDeclaration("success", "binary")])
    results.trials = [trial("success", True), trial("success", True), trial("success", True, "y")]
    results.trials.append(trial("failure", False, "y"))
    merge_duplicates(results)
    assert [(one.original_id, one.outcome) for one in results.trials] == [("x", "success"), ("y", "missing")]
    assert results.trials[1].missing == {"success": "invalid"}
    assert results.trials[1].sources == ("True", "False")


def test_a_published_mean_is_compared_without_and_with_the_missing_ones() -> None:
    values = [1.0, 0.0, None, None]
    status = {figure: check_mean("m", "w", figure, values) for figure in (0.5, 0.25, 0.3)}
    assert [check.status for check in status.values() if check] == [
        *("agrees", "agrees_counting_missing_as_failure", "disagrees")
    ]
    assert check_mean("m", "w", True, values) is None
    assert check_mean("m", "w", "0.5", values) is None


def test_a_time_without_an_offset_names_no_moment_but_two_of_them_a_duration() -> None:
    assert moment_text("2025-01-01T00:00:00") is None
    assert moment_text("2025-01-01T01:00:00+01:00") == "2025-01-01T00:00:00.000000Z"
    assert seconds_between("2025-01-01T00:00:00", "2025-01-01T00:00:05") == 5
    assert seconds_between("2025-01-01T00:00:00", "2025-01-01T00:00:05Z") is None
    assert seconds_between("2025-01-01T00:00:05Z", "2025-01-01T00:00:00Z") is None


def test_links_and_devices_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret.json").write_text("{}")
    (tmp_path / "in" / "results.json").symlink_to(tmp_path / "secret.json")
    os.mkfifo(tmp_path / "in" / "a.json")
    files = SourceFiles()
    assert [name for _, name in files.below(tmp_path / "in")] == ["in/a.json"]
    for name in ("results.json", "a.json"):
        with pytest.raises(BadInput):
            files.bytes(tmp_path / "in" / name, name)
    assert files.read == []


def test_both_readers_of_inspect_logs_agree_on_a_json_log() -> None:
    log = CASES / "inspect_two_models" / "input"
    assert told(read("inspect", log)) == told(read("inspect", log, reader="inspect"))


MAKE_LOGS = """
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate, solver

@solver
def breaking(ids):
    async def solve(state, generate):
        if state.sample_id in ids:
            raise RuntimeError("made to fail")
        return state
    return solve

def run(folder, right, broken=()):
    outputs = [ModelOutput.from_content("mockllm/model", f"A{n // 2}" if right(n // 2) else "no") for n in range(40)]
    for output in outputs:
        output.usage = ModelUsage(input_tokens=5, output_tokens=2, total_tokens=7)
    task = Task(
        dataset=[Sample(id=f"s{n}", input=f"Q{n}", target=f"A{n}") for n in range(8)],
        solver=[breaking(set(broken)), generate()],
        scorer=match(),
    )
    model = get_model("mockllm/model", custom_outputs=outputs)
    eval(task, model=model, log_dir=folder, display="none", max_samples=1, epochs=2, fail_on_error=False)

run("logs/one", lambda n: n % 4)
run("logs/two", lambda n: n % 2)
run("logs/broken", lambda n: True, [f"s{n}" for n in range(8)])
"""


@pytest.mark.acceptance
def test_fresh_zstd_logs_of_the_real_tool_are_read_like_the_tool_reads_them(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai")
    if shutil.which("unshare") is None:
        pytest.skip("unshare is needed to keep the tool off the network")
    (tmp_path / "make.py").write_text(MAKE_LOGS)
    inside = f"ip link set lo up 2>/dev/null; exec {sys.executable} make.py"
    command = ["unshare", "--map-root-user", "--net", "sh", "-c", inside]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True, timeout=240)
    logs = tmp_path / "logs"
    methods = {info.compress_type for path in logs.rglob("*.eval") for info in zipfile.ZipFile(path).infolist()}
    assert methods == {93}
    raw, own = read("inspect", logs), read("inspect", logs, reader="inspect")
    assert told(raw) == told(own)
    assert len(raw.trials) == 48
    assert {total.status for total in raw.totals} == {"agrees"}
    contradicted = [finding for finding in raw.findings if finding.code == "status_contradicts_rows"]
    assert [finding.count for finding in contradicted] == [16], "the tool itself says success over 16 failed samples"


def test_usual_columns_need_no_mapping(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("task,variant,resolved\na,v,true\nb,v,false\n")
    results = read("table", tmp_path / "t.csv")
    assert [metric.name for metric in results.metrics] == ["resolved"]
    assert {trial.task_id: trial.outcome for trial in results.trials} == {"a": "success", "b": "failure"}
