"""Is the recorded result the one that was judged, and was a result that was judged ever thrown away?

The event log says `trial.judged` with outcome and metrics at the moment of judging; `metrics.json` is what the analysis
reads. An attempt that was judged and then counted as lost was measured twice: a reader should know.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from labaudit.attest.run_reader import Json
from labaudit.core.canonical import canonical_bytes
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput
from labaudit.verify.run_view import MAX_LINE, RunView
from labaudit.verify.sources import CannotRead
from labaudit.verify.verdict import Finding

JUDGED = "trial.judged"
_JUDGED_TEXT = b'"event_type":"trial.judged"'
_METRICS = "metrics.json"
MAX_RESULT = 4 * 1024 * 1024


def judged_result_is_the_recorded_one(view: RunView, folder: str, record: Json, judged: list[str]) -> Iterator[Finding]:
    """Outcome and metrics of metrics.json are those that the log says were judged."""
    path = f"{folder}/{_METRICS}"
    if not judged or record["status"] != "completed":
        return
    if not any(entry["path"] == _METRICS for entry in record["files"]):
        yield Finding("record_mismatch", path, "the log tells of a result, and the record lists no metrics.json")
        return
    recorded = _document(view, path)
    for reference in judged:
        payload = _document(view, f"artifacts/sha256/{reference[18:]}")
        if recorded is None or payload is None:
            continue  # the steps that hash files and artifacts name it
        for key in ("outcome", "metrics"):
            if key in payload and not _same(payload[key], recorded.get(key)):
                yield Finding("record_mismatch", path, f"its {key} is not what the event log says was judged")


def _document(view: RunView, path: str) -> Json | None:
    try:
        return parse_object(view.source.read(path, MAX_RESULT))
    except (CannotRead, BadInput):
        return None


def _same(one: Any, other: Any) -> bool:
    # As JSON: Python would take true for 1.
    return canonical_bytes(one) == canonical_bytes(other)


def results_measured_again(view: RunView) -> list[str]:
    """The logs of attempts that were judged and do not count; an older runner could leave some without meaning to."""
    if "measured_again" not in view.memo:
        view.memo["measured_again"] = list(_measured_again(view))
    found: list[str] = view.memo["measured_again"]
    return found


def _measured_again(view: RunView) -> Iterator[str]:
    for trial_id, record in view.records():
        if record["attempt"] < 2 and record["status"] != "lost":
            continue
        folder = f"trials/{trial_id}"
        names = {entry["path"] for entry in record["files"]}
        logs = [name for name in names if name.startswith("attempts/") and name.endswith("/events.jsonl")]
        if record["status"] == "lost" and "events.jsonl" in names:
            logs.append("events.jsonl")
        yield from (f"{folder}/{name}" for name in sorted(logs) if _was_judged(view, f"{folder}/{name}"))


def _was_judged(view: RunView, path: str) -> bool:
    try:
        with view.source.open(path) as stream:
            while line := stream.readline(MAX_LINE):
                if _JUDGED_TEXT in line:
                    return True
    except CannotRead:
        pass  # the step that hashes trial files names it
    return False
