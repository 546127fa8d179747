"""Received spans, or the files that a harness's manifest names, to artifacts and the runner's trace_manifest.json.

The stored manifest is always the runner's own: it names artifacts that are in the store and spans that were counted
here. What the harness said about its files is checked first and never copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from labaudit.core.clock import Clock, rfc3339
from labaudit.core.digest import sha256_hex
from labaudit.core.redaction import Redactor
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput
from labaudit.evidence.inside_out import CONTAINER_OUT, open_regular, relative_inside
from labaudit.evidence.otlp.received import ReceivedSpans
from labaudit.evidence.otlp.spans import JSON_LINES, count_in_file
from labaudit.records.ids import Ids
from labaudit.records.parts import Redaction
from labaudit.records.schema_registry import validate
from labaudit.records.trace_manifest import TraceFile, TraceManifest
from labaudit.store import atomic
from labaudit.store.artifact_store import ArtifactStore

MAX_MANIFEST_BYTES = 1 << 20
MAX_TRACE_FILES = 256
MAX_TRACE_BYTES = 64 << 20


@dataclass(frozen=True)
class IngestedTraces:
    """The runner's manifest (None when there are no traces), what is wrong, and the artifacts by role."""

    manifest: TraceManifest | None
    mode: Literal["none", "otlp", "manifest"]
    problems: tuple[str, ...] = ()
    artifacts: Mapping[str, str] = field(default_factory=dict)


class TraceIngestor:
    """The seed's interface; it writes artifacts, the caller writes the manifest."""

    def __init__(self, store: ArtifactStore, ids: Ids, clock: Clock, redactor: Redactor | None = None) -> None:
        self._store = store
        self._ids = ids
        self._clock = clock
        self._redactor = redactor or Redactor()

    def ingest(
        self, received: ReceivedSpans | None, out: Path, manifest_path: str, *, inside_out: str = CONTAINER_OUT
    ) -> IngestedTraces:
        """Spans that were received over OTLP count first; without any, the files that the harness's manifest names."""
        if received is not None and received.spans:
            return self._ingest_received(received)
        problems = received.problems if received is not None else ()
        return self._ingest_files(out, manifest_path, inside_out, problems)

    def _ingest_received(self, received: ReceivedSpans) -> IngestedTraces:
        assert received.path is not None
        redaction = {"applied": received.redaction_applied}
        with received.path.open("rb") as stream:
            reference = self._store.put(stream, "application/jsonl", redaction)
        entry = TraceFile(
            path="otlp/traces.jsonl",
            format=JSON_LINES,
            sha256=reference.rpartition("/")[2],
            bytes=received.path.stat().st_size,
            span_count=received.spans,
            artifact_ref=reference,
        )
        ext = {"origin": "otlp", "requests": received.requests, "refused_spans": received.refused_spans}
        manifest = self._manifest([entry], received.redaction_applied, ext | {"problems": list(received.problems)})
        return IngestedTraces(manifest, "otlp", received.problems, {reference: "trace"})

    def _ingest_files(self, out: Path, path: str, inside_out: str, before: tuple[str, ...]) -> IngestedTraces:
        try:
            declared = _read_declaration(out, path, self._ids)
        except BadInput as error:
            return IngestedTraces(None, "manifest", (*before, f"{path}: {error.what}"))
        if declared is None:
            return IngestedTraces(None, "none", before)
        entries: list[TraceFile] = []
        problems = list(before)
        applied = False
        for item in declared.traces[:MAX_TRACE_FILES]:
            try:
                entry, changed = self._take(out, item, inside_out)
                entries.append(entry)
                applied |= changed
            except BadInput as error:
                problems.append(f"{item.path[:200]}: {error.what}")
        if len(declared.traces) > MAX_TRACE_FILES:
            problems.append(f"{len(declared.traces) - MAX_TRACE_FILES} files beyond the first {MAX_TRACE_FILES}")
        manifest = self._manifest(entries, applied, {"origin": "manifest", "problems": problems})
        return IngestedTraces(manifest, "manifest", tuple(problems), {str(e.artifact_ref): "trace" for e in entries})

    def _take(self, out: Path, item: TraceFile, inside_out: str) -> tuple[TraceFile, bool]:
        data = _read_inside(out, relative_inside(item.path, inside_out=inside_out), MAX_TRACE_BYTES)
        if data is None:
            raise BadInput("there is no such file")
        if len(data) != item.bytes or sha256_hex(data) != item.sha256:
            raise BadInput("has other bytes than the manifest says")
        spans = count_in_file(data, item.format)
        kept = self._redactor.apply(data)
        reference = self._store.put(kept.data, "application/octet-stream", {"applied": kept.applied})
        entry = TraceFile(
            path=item.path,
            format=item.format,
            sha256=reference.rpartition("/")[2],
            bytes=len(kept.data),
            span_count=spans,
            artifact_ref=reference,
        )
        return entry, kept.applied

    def _manifest(self, entries: list[TraceFile], applied: bool, ext: dict[str, object]) -> TraceManifest:
        return TraceManifest(
            created_at=rfc3339(self._clock.now()),
            ids=self._ids,
            traces=tuple(entries),
            redaction=Redaction(applied=applied),
            ext=ext,
        )


def write_trace_manifest(path: Path, manifest: TraceManifest) -> None:
    """The trial's trace_manifest.json."""
    atomic.write_bytes(path, manifest.to_bytes())


def _read_declaration(out: Path, path: str, ids: Ids) -> TraceManifest | None:
    data = _read_inside(out, path, MAX_MANIFEST_BYTES)
    if data is None:
        return None
    value = parse_object(data)
    findings = validate("trace_manifest_v1", value)
    if findings:
        raise BadInput(f"breaks trace_manifest_v1 at {findings[0].path}: {findings[0].message}")
    declared = TraceManifest.from_json(value)
    if declared.ids != ids:
        raise BadInput("carries the ids of another trial")
    return declared


def _read_inside(out: Path, relative: str, limit: int) -> bytes | None:
    stream = open_regular(out, relative)
    if stream is None:
        return None
    with stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise BadInput(f"is larger than {limit} bytes")
    return data
