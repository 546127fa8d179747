"""Readers of files from strangers raise nothing but their own errors, and what they give can always be written."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labaudit.core.canonical import canonical_bytes
from labaudit.errors import LabauditError
from labaudit.importers.foreign_json import plain, read_foreign_json
from labaudit.importers.import_run import import_results, read_results
from labaudit.importers.plan import plan_import
from labaudit.importers.protocol import ReadOptions
from labaudit.importers.source_files import SourceFiles
from labaudit.store.lab_folder import LabFolder

KEYS = [
    *(
        "results",
        "is_resolved",
        "task_id",
        "trial_name",
        "accuracy",
        "n_resolved",
        "failure_mode",
        "total_input_tokens",
    ),
    *("eval", "samples", "scores", "id", "epoch", "status", "error", "value", "match", "model", "task", "results"),
    *("model_usage", "total_tokens", "total_time", "version", "total_samples", "metrics", "name", "scorer", "packages"),
    *("resolved_ids", "unresolved_ids", "resolved", "leaderboards", "per_instance_details", "cost", "api_calls"),
    *("task_name", "agent_info", "verifier_result", "rewards", "reward", "exception_info", "agent_result", "stats"),
    *("trial_started_at", "trial_ended_at", "started_at", "finished_at", "instance_id", "model_name_or_path", "evals"),
]
WORDS = [
    "C",
    "I",
    "P",
    "success",
    "a",
    "2025-01-01T00:00:00",
    "2025-01-01T00:00:00+99:00",
    "9999-12-31T23:59:59Z",
    "nan",
]
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(WORDS), st.text(max_size=6))
keys = st.one_of(st.sampled_from(KEYS), st.text(max_size=4))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=6)),
    max_leaves=30,
)
formats = st.sampled_from(["terminal-bench", "inspect", "harbor", "swebench", "table"])
NAMES = [
    "results.json",
    "t/x/results.json",
    "report.json",
    "job/a/result.json",
    "job/result.json",
    "log.json",
    "p.jsonl",
]
CASES = Path(__file__).resolve().parents[2] / "conformance" / "importers"
REAL = sorted(path for path in CASES.rglob("*") if path.is_file() and "input" in path.parts)


def try_import(format_name: str, path: Path, folder: Path) -> None:
    """Reads and, where that succeeds, plans and writes: the whole of an import but the sealing."""
    options = ReadOptions(mapping={"success": "success", "task": "task"})
    try:
        results = read_results(format_name, [path], SourceFiles(max_file=1 << 20, max_files=100), options)
        plan_import(results)
        import_results(format_name, [path], LabFolder(folder), options=options)
    except LabauditError:
        return


@given(formats, st.dictionaries(st.sampled_from(NAMES), values, min_size=1, max_size=3))
def test_no_json_makes_a_reader_raise_anything_but_its_own_errors(
    tmp_path_factory: pytest.TempPathFactory, format_name: str, documents: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    for name, value in documents.items():
        path = folder / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    try_import(format_name, folder / "in", folder / "lab")
    for path in (folder / "in").rglob("*.json*"):
        try_import(format_name, path, folder / "lab")


@given(formats, st.sampled_from(REAL), st.data())
def test_no_damage_to_a_sound_file_makes_a_reader_raise_anything_but_its_own_errors(
    tmp_path_factory: pytest.TempPathFactory, format_name: str, source: Path, data: st.DataObject
) -> None:
    content = bytearray(source.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    path = tmp_path_factory.mktemp("damage") / source.name
    path.write_bytes(bytes(content[:cut]) if data.draw(st.booleans()) else bytes(content))
    try_import(format_name, path, path.parent / "lab")


@given(st.binary(max_size=400), st.data())
def test_no_archive_makes_the_inspect_reader_raise_anything_but_its_own_errors(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, data: st.DataObject
) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(data.draw(values)))
        archive.writestr("samples/1_epoch_1.json", json.dumps(data.draw(values)))
    content = bytearray(out.getvalue())
    if data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(content)))
        content[place : place + len(noise)] = noise
    path = tmp_path_factory.mktemp("zip") / "log.eval"
    path.write_bytes(bytes(content))
    try_import("inspect", path, path.parent / "lab")


@given(values)
def test_any_foreign_value_can_be_kept_as_canonical_json(value: Any) -> None:
    canonical_bytes(plain(read_foreign_json(json.dumps(value).encode(), "x")))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_sentence(data: bytes) -> None:
    try:
        read_foreign_json(data, "x")
    except LabauditError as error:
        assert error.where == "x"  # noqa: PT017 - both ways are fine, a third one is not
