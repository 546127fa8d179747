"""One trial's folder to a value for its page, every file hashed against the trial's record as it is read."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from labaudit.core.digest import hash_file, hex_of_reference, sha256_hex
from labaudit.core.merkle import leaf_hash
from labaudit.errors import BadInput
from labaudit.records.schema_registry import fast_validator
from labaudit.site.drawing.plain_text import Excerpt, excerpt
from labaudit.site.reading.published_run import PublishedRun, lines_of
from labaudit.store.run_folder import TrialFolder

Json = dict[str, Any]
# A file up to this size is read and hashed in one go; a larger one is hashed as a stream and shown by its head.
WHOLE = 8 << 20
_PREVIEW = 160
_PREVIEWS = 40
# The output and the run record may have any shape: one is the harness's, the other is judged rule by rule.
_DOCUMENTS = {
    "metrics": "metrics_v1",
    "grades": "grades_v1",
    "trial_output": None,
    "state_inventory": "state_inventory_v1",
    "run_record": None,
}


@dataclass
class TrialReading:
    """What a trial's page shows. Absent documents are None; `problems` are sentences for the top of the page."""

    row: Json
    record: Json | None
    record_bytes: bytes
    metrics: Json | None = None
    grades: Json | None = None
    output: Json | None = None
    inventory: Json | None = None
    events: list[Json] = field(default_factory=list)
    event_bytes: bytes | None = b""
    previews: dict[str, Excerpt] = field(default_factory=dict)
    stdout: Excerpt | None = None
    stderr: Excerpt | None = None
    network: list[Json] = field(default_factory=list)
    artifacts: list[Json] = field(default_factory=list)
    scores: list[Json] = field(default_factory=list)
    a2a: int = 0
    a2a_packets: bytes | None = None
    run_record: Json | None = None
    problems: list[str] = field(default_factory=list)

    @property
    def trial_id(self) -> str:
        """The trial's id."""
        return str(self.row["trial_id"])

    @property
    def leaf(self) -> bytes:
        """The record as a leaf of the run tree."""
        return leaf_hash(self.record_bytes)


def read_trial(run: PublishedRun, row: Json) -> TrialReading:
    """All that the site shows of one trial."""
    trial = run.folder.trial(row["trial_id"])
    record_bytes = _bytes(trial.trial_record) or b""
    record = _object(record_bytes)
    reading = TrialReading(row, record, record_bytes)
    if record is None or not fast_validator("trial_record_v1").is_valid(record):
        reading.problems.append("trial_record.json is missing, unreadable or of another shape")
        reading.record = None
        return reading
    files = {item["path"]: item for item in record.get("files", []) if isinstance(item, dict) and "path" in item}
    checked = _Checked(trial, files, reading.problems)
    for name, schema in _DOCUMENTS.items():
        setattr(reading, _FIELD.get(name, name), _document(checked, name, schema))
    reading.event_bytes = checked.read("events.jsonl")
    reading.events = list(lines_of(reading.event_bytes or b""))
    reading.artifacts = list(lines_of(checked.read("artifacts.jsonl") or b""))
    reading.network = list(lines_of(checked.read("network_events.jsonl") or b""))
    reading.scores = list(lines_of(checked.read("score_records.jsonl") or b""))
    reading.a2a = sum(1 for _ in lines_of(checked.read("a2a_events.jsonl") or b""))
    reading.a2a_packets = checked.read("a2a_packets.jsonl")
    reading.stdout, reading.stderr = checked.excerpt("stdout.log"), checked.excerpt("stderr.log")
    checked.rest()
    reading.previews = _previews(run, reading)
    return reading


def _document(checked: _Checked, name: str, schema: str | None) -> Json | None:
    value = _object(checked.read(f"{name}.json"))
    if value is not None and schema is not None and not fast_validator(schema).is_valid(value):
        checked.problem(f"{name}.json does not have the shape of {schema}")
        return None
    return value


_FIELD = {"trial_output": "output", "state_inventory": "inventory"}


class _Checked:
    """A trial's files, hashed as they are read."""

    def __init__(self, trial: TrialFolder, files: dict[str, Json], problems: list[str]) -> None:
        self._folder = trial.path
        self._files = files
        self._left = set(files)
        self._problems = problems

    def read(self, name: str) -> bytes | None:
        """The bytes of a listed file; None when the record does not list it or it is too large to show."""
        if name not in self._files:
            return None
        self._left.discard(name)
        path = self._folder / name
        if self._files[name]["size"] > WHOLE:
            self._check(name, *self._stream(path))
            return None
        data = _bytes(path)
        if data is None:
            self._problems.append(f"{name} is listed in the record and cannot be read")
            return None
        self._check(name, sha256_hex(data), len(data))
        return data

    def excerpt(self, name: str) -> Excerpt | None:
        """The head of a listed text file, however large it is."""
        if name not in self._files:
            return None
        if self._files[name]["size"] <= WHOLE:
            data = self.read(name)
            return None if data is None else excerpt(data)
        self._left.discard(name)
        self._check(name, *self._stream(self._folder / name))
        with (self._folder / name).open("rb") as stream:
            return excerpt(stream.read(1 << 16), size=self._files[name]["size"])

    def problem(self, sentence: str) -> None:
        """Notes what is wrong with a file beyond its digest."""
        self._problems.append(sentence)

    def rest(self) -> None:
        """Hashes what no page shows: a listed file that is linked or counted must be the file that was sealed."""
        for name in sorted(self._left):
            path = self._folder / name
            if path.is_file() and not path.is_symlink():
                self._check(name, *self._stream(path))
            else:
                self._problems.append(f"{name} is listed in the record and missing")
        self._left.clear()

    def _stream(self, path: Path) -> tuple[str, int]:
        try:
            return hash_file(path)
        except OSError:
            return "", -1

    def _check(self, name: str, sha256: str, size: int) -> None:
        entry = self._files[name]
        if sha256 != entry["sha256"] or size != entry["size"]:
            self._problems.append(f"{name} is not the file that was sealed: its digest differs from the record's")


def _previews(run: PublishedRun, reading: TrialReading) -> dict[str, Excerpt]:
    """The beginning of the first payloads that are text, each hashed against its name."""
    found: dict[str, Excerpt] = {}
    types = {item.get("ref"): str(item.get("content_type", "")) for item in reading.artifacts}
    for event in reading.events:
        reference = event.get("payload_ref")
        if not isinstance(reference, str) or reference in found:
            continue
        if len(found) >= _PREVIEWS:
            break
        kind = types.get(reference, "")
        if not kind.startswith(("text/", "application/json", "application/jsonl")):
            continue
        try:
            name = hex_of_reference(reference)
        except BadInput:
            continue
        data = _bytes(run.folder.artifacts.path(reference))
        if data is None:
            reading.problems.append(f"payload {name[:12]} is missing from the store")
        elif sha256_hex(data) != name:
            reading.problems.append(f"payload {name[:12]} is not what its name says")
        else:
            found[reference] = excerpt(data, _PREVIEW)
    return found


def _bytes(path: Path) -> bytes | None:
    """A regular file's bytes; None for anything else. No link is followed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            return stream.read()
    except (OSError, ValueError):
        return None


def _object(data: bytes | None) -> Json | None:
    if not data:
        return None
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
