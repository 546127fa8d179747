"""A trial's trace files and checkpoints to what they show: spans in order of their start, files of the last checkpoint.

Both stand in the artifact store. What is absent, damaged or of a form that is not read here is said, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from labaudit.analysis.explain.stream import MAX_STREAM_BYTES, Event, Stream
from labaudit.core.strict_json import parse_json, parse_object
from labaudit.errors import BadInput, LabauditError
from labaudit.evidence.otlp.spans import from_protobuf
from labaudit.store.artifact_store import ArtifactStore
from labaudit.store.run_folder import TrialFolder

FAILED_STATUS = (2, "STATUS_CODE_ERROR")
Files = Mapping[str, str]


def read_spans(folder: TrialFolder, store: ArtifactStore | None) -> Stream:
    """The spans of all trace files as events with `name`, `start` and `failed`."""
    if store is None or not folder.trace_manifest.is_file() or folder.trace_manifest.is_symlink():
        return Stream()
    try:
        traces = parse_object(folder.trace_manifest.read_bytes()).get("traces")
        spans = [span for trace in traces or () for span in _spans_of(trace, store)] if isinstance(traces, list) else []
    except (LabauditError, OSError) as error:
        return Stream(present=True, problem=error.what if isinstance(error, LabauditError) else str(error))
    return Stream(tuple(sorted(spans, key=_start)), present=True)


def _start(span: Event) -> tuple[str, str]:
    """Nanoseconds as text of one length; equal starts keep a fixed order by name."""
    return str(span["start"]).zfill(20), str(span["name"])


def _spans_of(trace: object, store: ArtifactStore) -> Iterator[Event]:
    if not isinstance(trace, dict):
        raise BadInput("the trace manifest lists what is no trace")
    reference, form = trace.get("artifact_ref"), str(trace.get("format"))
    proto = "proto" in form.lower()
    if not isinstance(reference, str) or not (proto or "json" in form.lower()):
        raise BadInput(f"a trace file of the form {form!r} is not read here")
    data = store.get(reference)
    if len(data) > MAX_STREAM_BYTES:
        raise BadInput(f"a trace file is larger than {MAX_STREAM_BYTES} bytes")
    for line in [from_protobuf(data).line] if proto else data.splitlines():
        if line.strip():
            yield from _spans_in(parse_json(line))


def _spans_in(value: object) -> Iterator[Event]:
    """OTLP/JSON: resources hold scopes, scopes hold spans."""
    for resource in _listed(value, "resourceSpans"):
        for scope in _listed(resource, "scopeSpans"):
            for span in _listed(scope, "spans"):
                if isinstance(span, dict) and isinstance(span.get("name"), str):
                    status = span.get("status")
                    code = status.get("code") if isinstance(status, dict) else None
                    start = str(span.get("startTimeUnixNano", ""))
                    yield {"name": span["name"], "start": start, "failed": code in FAILED_STATUS}


def _listed(value: object, key: str) -> list[object]:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def read_surfaces(folder: TrialFolder, store: ArtifactStore | None) -> dict[str, Files]:
    """Surface name -> path -> digest (or kind) in the last checkpoint; no checkpoint gives no surface."""
    if store is None or not folder.checkpoints.is_dir():
        return {}
    found: dict[str, Files] = {}
    try:
        last = max((_checkpoint(path) for path in sorted(folder.checkpoints.glob("*.json"))), default=None, key=_place)
        for surface in _listed(last, "surfaces"):
            if isinstance(surface, dict):
                found[str(surface.get("name"))] = _files(parse_object(store.get(str(surface.get("manifest_ref")))))
    except (LabauditError, OSError):
        return {}
    return found


def _checkpoint(path: Path) -> dict[str, object]:
    return parse_object(path.read_bytes(), where=path.name)


def _place(checkpoint: Mapping[str, object]) -> int:
    """Where in the event log it was saved."""
    seq = checkpoint.get("event_seq")
    return seq if isinstance(seq, int) else -1


def _files(manifest: dict[str, object]) -> Files:
    found = {}
    for entry in _listed(manifest, "entries"):
        if isinstance(entry, dict) and entry.get("kind") != "folder":
            path = entry.get("path", entry.get("path_base64"))
            content = entry.get("sha256", entry.get("target", entry.get("target_base64")))
            found[str(path)] = str(content)
    return found
