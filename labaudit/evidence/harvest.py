"""The out folder of a finished trial to the evidence files of its trial folder: redacted, bounded, judged, recorded.

Nothing in the out folder is trusted: files are opened without following links, and what is odd is left out with a
reason. What arrives here is judged as it is stored, so that anyone who has the stored files comes to the same verdict.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from labaudit.core.clock import Clock
from labaudit.core.redaction import Redactor
from labaudit.errors import BadInput, LabauditError
from labaudit.evidence.control_history import read_control_history
from labaudit.evidence.harness_manifest import DEFAULT_EVENTS, DEFAULT_TRACES, MAX_BYTES, HarnessManifest
from labaudit.evidence.hook_collector import HookCollector, HookStream
from labaudit.evidence.inside_out import CONTAINER_OUT, open_regular
from labaudit.evidence.otlp.received import ReceivedSpans
from labaudit.evidence.recorder import Recorder
from labaudit.evidence.trace_ingest import IngestedTraces, TraceIngestor, write_trace_manifest
from labaudit.records.ids import Ids
from labaudit.store import atomic
from labaudit.store.run_folder import TrialFolder

MANIFEST = "harness_manifest.json"
_COPY_CHUNK = 1 << 20


@dataclass(frozen=True)
class HarvestOrder:
    """What the runner knows when a harness has ended."""

    out: Path
    """The collected /out folder."""
    ids: Ids
    strict: bool
    """True under replay_strict_v2."""
    cut_short: bool = False
    """The runner ended the harness (timeout, stop, kill)."""
    inside_out: str = CONTAINER_OUT
    """The out folder as the harness sees it, for absolute paths in its manifest."""
    written: Mapping[str, Path] = field(default_factory=dict)
    """Files that a bridge wrote in the harness's place, by trial file name."""
    received: ReceivedSpans | None = None
    """What the OTLP receiver took in; None when none was started."""


@dataclass(frozen=True)
class Harvest:
    """What was found; `problems` are sentences about files that could not be taken."""

    manifest: HarnessManifest | None
    manifest_problem: str
    stream: HookStream | None
    traces: IngestedTraces
    problems: tuple[str, ...] = ()


def harvest(order: HarvestOrder, trial: TrialFolder, recorder: Recorder, clock: Clock) -> Harvest:
    """Fills harness_manifest.json, harness_events.jsonl, sdk_boundaries.jsonl and trace_manifest.json of `trial`.

    control.jsonl must already be there. Events: one `manifest.*`, one `hooks.*`, one `traces.*` from the framework,
    and a copy of every event of a valid hook stream.
    """
    taking = _Taking(order, recorder.redactor)
    manifest, manifest_problem = _manifest(taking, trial)
    recorder.record(
        f"manifest.{'accepted' if manifest else 'missing' if not trial.harness_manifest.is_file() else 'rejected'}",
        {"problem": manifest_problem} if manifest_problem else {"level": manifest.level if manifest else None},
    )
    _take_declared(taking, manifest, trial)
    stream = None
    if trial.harness_events.is_file():
        stream = HookCollector().collect(
            trial.harness_events,
            manifest,
            order.ids,
            read_control_history(trial.control_log),
            strict=order.strict,
            cut_short=order.cut_short,
        )
        _record_stream(stream, trial, recorder, redacted=taking.changed)
    traces = _traces(order, manifest, trial, recorder, clock)
    for problem in taking.problems:
        recorder.record("evidence.refused", {"problem": problem})
    return Harvest(manifest, manifest_problem, stream, traces, tuple(taking.problems))


class _Taking:
    """Copies from the out folder (or from a bridge's files) into the trial folder."""

    def __init__(self, order: HarvestOrder, redactor: Redactor) -> None:
        self.order = order
        self.problems: list[str] = []
        self.changed = False
        self._redactor = redactor

    def take(self, name: str, relative: str, target: Path, *, limit: int | None = None) -> bool:
        """True when `target` now holds the redacted file; an odd file becomes a problem, an absent one does not."""
        try:
            source = self._open(name, relative)
            if source is None:
                return False
            with source, atomic.replacing(target) as sink:
                self._copy(source, sink, limit, relative)
        except BadInput as error:
            self.problems.append(f"{relative}: {error.what}")
            return False
        return True

    def _open(self, name: str, relative: str) -> BinaryIO | None:
        replaced = self.order.written.get(name)
        return replaced.open("rb") if replaced is not None else open_regular(self.order.out, relative)

    def _copy(self, source: BinaryIO, sink: BinaryIO, limit: int | None, where: str) -> None:
        if limit is not None:
            data = source.read(limit + 1)
            if len(data) > limit:
                raise BadInput(f"is larger than {limit} bytes", where=where)
            kept = self._redactor.apply(data)
            self.changed |= kept.applied
            sink.write(kept.data)
        elif not self._redactor.active:
            shutil.copyfileobj(source, sink, _COPY_CHUNK)
        else:
            before = _replaced(self._redactor)
            redacting = self._redactor.stream()
            while chunk := source.read(_COPY_CHUNK):
                sink.write(redacting.feed(chunk))
            sink.write(redacting.close())
            self.changed |= _replaced(self._redactor) > before


def _replaced(redactor: Redactor) -> int:
    """How much was taken out so far; a rule that only counts takes nothing out."""
    return sum(count for name, count in redactor.totals.items() if not name.endswith(":store"))


def _manifest(taking: _Taking, trial: TrialFolder) -> tuple[HarnessManifest | None, str]:
    if not taking.take(MANIFEST, MANIFEST, trial.harness_manifest, limit=MAX_BYTES):
        return None, taking.problems[-1] if taking.problems else "the harness wrote no harness_manifest.json"
    try:
        return HarnessManifest.load(trial.harness_manifest), ""
    except LabauditError as error:
        return None, error.what


def _take_declared(taking: _Taking, manifest: HarnessManifest | None, trial: TrialFolder) -> None:
    inside = taking.order.inside_out
    try:
        declared = manifest.events_path(inside) if manifest is not None else None
        taking.take("harness_events.jsonl", declared or DEFAULT_EVENTS, trial.harness_events)
        if manifest is not None:
            taking.take("sdk_boundaries.jsonl", manifest.boundaries_path(inside), trial.boundaries)
    except BadInput as error:
        taking.problems.append(f"{error.where}: {error.what}")


def _record_stream(stream: HookStream, trial: TrialFolder, recorder: Recorder, *, redacted: bool) -> None:
    summary: dict[str, object] = {
        "verdict": stream.verdict,
        "strict": stream.strict,
        "events": stream.events,
        "size": stream.size,
        "sha256": stream.sha256,
        "findings_by_rule": dict(stream.findings_by_rule),
        "findings": [{"line": f.line, "rule": f.rule, "name": f.name, "sentence": f.sentence} for f in stream.findings],
    }
    recorder.record("hooks.accepted" if stream.valid else "hooks.rejected", summary)
    if stream.valid:
        recorder.copy_hook_events(trial.harness_events, redacted=redacted)


def _traces(
    order: HarvestOrder, manifest: HarnessManifest | None, trial: TrialFolder, recorder: Recorder, clock: Clock
) -> IngestedTraces:
    ingestor = TraceIngestor(recorder.store, order.ids, clock, recorder.redactor)
    try:
        path = manifest.trace_manifest_path(order.inside_out) if manifest is not None else DEFAULT_TRACES
        traces = ingestor.ingest(order.received, order.out, path, inside_out=order.inside_out)
    except BadInput as error:
        traces = IngestedTraces(None, "manifest", (f"{error.where}: {error.what}",))
    recorder.references.update(traces.artifacts)
    if traces.manifest is not None:
        write_trace_manifest(trial.trace_manifest, traces.manifest)
    if traces.mode != "none" or traces.problems:
        spans = sum(entry.span_count or 0 for entry in traces.manifest.traces) if traces.manifest else 0
        payload = {"mode": traces.mode, "spans": spans, "problems": list(traces.problems)}
        recorder.record("traces.ingested", payload, source="traces")
    return traces
