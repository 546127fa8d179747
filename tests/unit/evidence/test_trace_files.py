"""Trace files that a harness leaves behind: checked against its manifest, counted here, stored as artifacts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from labaudit.core.redaction import Redactor
from labaudit.evidence.observation import NotObserved

SPAN = {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "step"}
EXPORT = {"resourceSpans": [{"scopeSpans": [{"spans": [SPAN, SPAN]}]}]}
LINES = (json.dumps(EXPORT) + "\n").encode() * 2
IDS = {"run_id": "run-1", "trial_id": "t-1", "variant_id": "base", "task_id": "k", "repl_idx": 0}


def leave(out: Path, *files: tuple[str, str, bytes], **changes: Any) -> None:
    """Trace files and their manifest in the out folder."""
    entries = []
    for name, form, data in files:
        (out / name).write_bytes(data)
        sha256 = hashlib.sha256(data).hexdigest()
        entries.append({"path": f"/out/{name}", "format": form, "sha256": sha256, "bytes": len(data)})
    value = {
        "schema_version": "trace_manifest_v1",
        "created_at": "2026-11-18T09:30:00Z",
        "ids": IDS,
        "traces": entries,
        **changes,
    }
    (out / "trace_manifest.json").write_text(json.dumps(value))


@pytest.fixture
def otel(trial: Any) -> Any:
    trial.level = "otel"
    trial.manifest("otel", tracing={"mode": "manifest", "trace_manifest_path": "/out/trace_manifest.json"})
    return trial


@pytest.mark.parametrize(
    ("form", "data", "spans"),
    [
        ("otlp_jsonl", LINES, 4),
        ("otlp-json", json.dumps(EXPORT).encode(), 2),
        ("jsonl", json.dumps({"name": "a", "context": {"trace_id": "0x1"}}).encode() + b"\n", 1),
        ("json", json.dumps([{"name": "a", "traceId": "1"}, {"name": "b", "traceId": "1"}]).encode(), 2),
    ],
)
def test_spans_in_files_are_counted_here_and_show_otel(otel: Any, form: str, data: bytes, spans: int) -> None:
    leave(otel.out, ("t.bin", form, data))
    found, observed = otel.finish()
    assert observed.level.observed == "otel"
    assert (observed.traces.mode, observed.traces.span_count, observed.traces.files) == ("manifest", spans, 1)
    assert otel.store.get(found.traces.manifest.traces[0].artifact_ref) == data


def test_a_format_that_cannot_be_counted_is_stored_and_shows_no_level(otel: Any) -> None:
    leave(otel.out, ("t.bin", "zipkin", b"\0\1"))
    observed = otel.finish()[1]
    assert observed.traces.present
    assert isinstance(observed.traces.span_count, NotObserved)
    assert observed.level.observed == "cli_basic"


def test_a_count_that_the_harness_states_is_not_believed(otel: Any) -> None:
    leave(otel.out, ("t.bin", "otlp_jsonl", b'{"resourceSpans":[]}\n'))
    path = otel.out / "trace_manifest.json"
    value = json.loads(path.read_bytes())
    value["traces"][0]["span_count"] = 99
    path.write_text(json.dumps(value))
    observed = otel.finish()[1]
    assert observed.traces.span_count == 0
    assert observed.level.observed == "cli_basic"


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"sha256": "0" * 64}, "other bytes"),
        ({"bytes": 3}, "other bytes"),
        ({"path": "/out/none.bin"}, "no such file"),
        ({"path": "/etc/passwd"}, "no file inside"),
        ({"path": "../t.bin"}, "no file inside"),
        ({"path": "/out/link"}, "plain file"),
    ],
)
def test_a_file_that_is_not_what_the_manifest_says_is_left_out(otel: Any, changes: dict[str, Any], word: str) -> None:
    (otel.out / "link").symlink_to("/etc/passwd")
    leave(otel.out, ("t.bin", "otlp_jsonl", LINES))
    path = otel.out / "trace_manifest.json"
    value = json.loads(path.read_bytes())
    value["traces"][0] |= changes
    path.write_text(json.dumps(value))
    observed = otel.finish()[1]
    assert observed.traces.files == 0
    assert word in observed.traces.problems[0]
    assert observed.level.observed == "cli_basic"


@pytest.mark.parametrize(
    ("content", "word"),
    [(b"{half", "no JSON"), (b'{"schema_version":"trace_manifest_v1"}', "breaks trace_manifest_v1")],
)
def test_a_broken_trace_manifest_is_an_answer_not_a_crash(otel: Any, content: bytes, word: str) -> None:
    (otel.out / "trace_manifest.json").write_bytes(content)
    found, observed = otel.finish()
    assert word in found.traces.problems[0]
    assert not otel.folder.trace_manifest.exists()
    assert observed.level.observed == "cli_basic"


def test_a_trace_manifest_of_another_trial_is_refused(otel: Any) -> None:
    leave(otel.out, ("t.bin", "otlp_jsonl", LINES), ids=IDS | {"trial_id": "t-2"})
    found, observed = otel.finish()
    assert "another trial" in found.traces.problems[0]
    assert not observed.traces.present


def test_trace_files_are_redacted_before_they_are_stored(otel: Any) -> None:
    otel.redactor = Redactor((), {"KEY": "hunter2222"})
    data = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [SPAN | {"name": "hunter2222"}]}]}]}).encode()
    leave(otel.out, ("t.bin", "otlp_json", data))
    found, observed = otel.finish()
    assert observed.traces.span_count == 1
    assert found.traces.manifest.redaction.applied
    assert b"hunter2222" not in otel.store.get(found.traces.manifest.traces[0].artifact_ref)
