"""Collected files and captured streams to artifacts and logs: redacted on the way, without holding large ones."""

from __future__ import annotations

import io
import mimetypes
from pathlib import Path

from labaudit.core.digest import CHUNK
from labaudit.core.redaction import Redactor
from labaudit.engines.protocol import CapturedStream, Collection
from labaudit.evidence.recorder import Recorder
from labaudit.store import atomic
from labaudit.store.run_folder import TrialFolder

# Files up to this size are redacted in one piece; larger ones as a stream.
WHOLE = 8 << 20
MAX_LISTED = 1000


def keep_outputs(recorder: Recorder, collected: Path, collection: Collection) -> None:
    """Every collected file becomes an artifact, with the list of them as one event."""
    listed: list[dict[str, object]] = []
    for entry in collection.files:
        reference = keep_file(recorder, collected / entry.path, f"out:{entry.path}")
        if len(listed) < MAX_LISTED:
            listed.append({"path": entry.path, "size": entry.size, "ref": reference})
    recorder.record(
        "outputs.collected",
        {
            "files": listed,
            "files_total": len(collection.files),
            "bytes_total": collection.total_bytes,
            "refused": [{"path": e.path, "kind": e.kind, "reason": e.reason} for e in collection.refused[:MAX_LISTED]],
            "refused_total": len(collection.refused),
        },
    )


def write_log(recorder: Recorder, path: Path, stream: CapturedStream) -> None:
    """One of `stdout.log` and `stderr.log`, redacted."""
    atomic.write_bytes(path, recorder.redactor.apply(stream.rendered()).data, durable=False)


def write_network_events(trial: TrialFolder, events: tuple[bytes, ...], redactor: Redactor) -> None:
    """`network_events.jsonl`; a host name that holds a secret is redacted like everything else."""
    with atomic.replacing(trial.network_events, durable=False) as stream:
        for line in events:
            stream.write(redactor.apply(line.rstrip(b"\n")).data + b"\n")


def keep_file(recorder: Recorder, path: Path, role: str) -> str:
    """Stores one file, redacted; memory does not grow with its size."""
    content_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    redactor = recorder.redactor
    if redactor.active and path.stat().st_size <= WHOLE:
        kept = redactor.apply(path.read_bytes())
        reference = recorder.store.put(kept.data, content_type, {"applied": kept.applied}, durable=False)
    elif redactor.active:
        with path.open("rb") as stream:
            cleaning = io.BufferedReader(_Cleaning(stream, redactor))
            # Whether anything is taken out is known at the end only, so the sidecar says what was done: a pass over it.
            reference = recorder.store.put(cleaning, content_type, {"applied": True}, durable=False)
    else:
        with path.open("rb") as stream:
            reference = recorder.store.put(stream, content_type, durable=False)
    recorder.references.setdefault(reference, role)
    return reference


class _Cleaning(io.RawIOBase):
    """A stream with secrets taken out on the way."""

    def __init__(self, source: io.BufferedReader, redactor: Redactor) -> None:
        self._source = source
        self._stream = redactor.stream()
        self._ready = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._ready and not self._ended:
            chunk = self._source.read(CHUNK)
            self._ended = not chunk
            self._ready = self._stream.feed(chunk) if chunk else self._stream.close()
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count
