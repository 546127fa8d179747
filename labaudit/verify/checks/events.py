"""Does each event log hold: canonical lines, unbroken chain, right trial, sealed end, and the recorded head?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, BinaryIO

import orjson

from labaudit.attest.run_reader import Json
from labaudit.core import hashchain
from labaudit.core.canonical import canonical_bytes, is_canonical
from labaudit.core.digest import hex_of_reference
from labaudit.core.merkle import TreeHasher
from labaudit.errors import BadInput
from labaudit.store.event_log import SCHEMA_VERSION, SEALED
from labaudit.verify.checks.judged import JUDGED, judged_result_is_the_recorded_one
from labaudit.verify.checks.trials import ATTEMPT_HEAD
from labaudit.verify.run_view import MAX_LINE, RunView
from labaudit.verify.sources import CannotRead
from labaudit.verify.verdict import Finding

_SORTED = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER
_REQUIRED = frozenset(
    {"attempt", "event_type", "hashchain", "ids", "redaction", "schema_version", "seq", "source", "ts"}
)
_ALLOWED = _REQUIRED | {"payload_ref", "step_index"}
_SOURCES = frozenset({"framework_events", "hooks", "traces", "sdk", "network_proxy", "imported"})
_MODES = frozenset({"store", "hash", "drop"})
_TIME = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?"
    r"(Z|[+-]([01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)


def event_logs_hold(view: RunView) -> Iterator[Finding]:
    """Every sealed log of every trial, also those of lost attempts."""
    for trial_id, record in view.records():
        folder = f"trials/{trial_id}"
        payloads = view.artifact_refs(trial_id)
        if record["events"] is not None:
            yield from _log(view, folder, record, record["attempt"], payloads)
        attempts = [match for entry in record["files"] if (match := ATTEMPT_HEAD.fullmatch(entry["path"]))]
        of_the_run = view.artifact_refs(None) if attempts else None
        both = None if payloads is None or of_the_run is None else payloads | of_the_run
        for match in attempts:
            yield from _log(view, f"{folder}/attempts/{match[1]}", record, int(match[1]), both)


def _log(view: RunView, folder: str, record: Json, attempt: int, payloads: set[str] | None) -> Iterator[Finding]:
    path = f"{folder}/events.jsonl"
    reader = LogReader(path, record["ids"], attempt, record["resolved_digest"], payloads)
    try:
        with view.source.open(path) as stream:
            finding = reader.read(stream)
    except CannotRead as error:
        yield error.finding
        return
    if finding is not None:
        yield finding
        return
    if folder.split("/")[-2] != "attempts":
        recorded = {key: record["events"][key] for key in ("count", "size", "head", "tree_root")}
        if reader.totals() != recorded:
            where = f"{folder}/trial_record.json"
            yield Finding("events_head_mismatch", where, "its event totals are not those of the log")
        yield from judged_result_is_the_recorded_one(view, folder, record, reader.judged)
    yield from _head(view, folder, record, attempt, reader)


def _head(view: RunView, folder: str, record: Json, attempt: int, reader: LogReader) -> Iterator[Finding]:
    path = f"{folder}/events.head"
    digests = {entry["path"]: entry["sha256"] for entry in record["files"]}
    name = path.split("/", 2)[2]
    expected = {
        "domain": hashchain.EVENTS_DOMAIN,
        "run_id": record["ids"]["run_id"],
        "trial_id": record["ids"]["trial_id"],
        "attempt": attempt,
        "resolved_digest": record["resolved_digest"],
        "sha256": digests.get(name.replace("events.head", "events.jsonl")),
        **reader.totals(),
    }
    try:
        if view.source.read(path, MAX_LINE) != canonical_bytes(expected):
            yield Finding("events_head_mismatch", path, "is not the head that the log gives")
    except CannotRead as error:
        yield error.finding


class LogReader:
    """Reads one log line by line and keeps its running totals; stops at the first line that is wrong.

    `payloads` are the artifacts that its events may name, None when that cannot be known.
    """

    def __init__(self, path: str, ids: Json, attempt: int, resolved_digest: str, payloads: set[str] | None) -> None:
        self._path = path
        self._ids = ids
        self._ids_bytes = b'"ids":' + canonical_bytes(ids) + b","
        self._attempt = attempt
        self._payloads = payloads
        self.judged: list[str] = []
        """The payloads of `trial.judged`, as far as they were stored unredacted."""
        self._genesis = hashchain.genesis(ids["run_id"], ids["trial_id"], attempt, resolved_digest)
        self._tree = TreeHasher()
        self._head = self._genesis
        self._size = 0

    def totals(self) -> Json:
        """Count, size, chain head and tree root so far."""
        root = self._tree.root().hex()
        return {"count": self._tree.size, "size": self._size, "head": self._head, "tree_root": root}

    def read(self, stream: BinaryIO) -> Finding | None:
        """The first thing that is wrong, or None."""
        tree, loads, dumps, split = self._tree, orjson.loads, orjson.dumps, hashchain.split
        head, count, last = self._head, 0, ""
        try:
            while raw := stream.readline(MAX_LINE + 1):
                if raw[-1] != 10:
                    return self._torn(raw, count)
                line = raw[:-1]
                event = loads(line)
                body, prev, own = split(line)
                if prev != head or sha256(f"{prev}\n".encode() + body).hexdigest() != own:
                    return self._broken(event, line, count)
                if dumps(event, option=_SORTED) != line and not is_canonical(line):
                    return self._at("event_not_canonical", count, "the line is not canonical JSON")
                if event["seq"] != count or last == SEALED or self._odd(event, line):
                    return self._explain(event, line, count, last)
                last = event["event_type"]
                if last == JUDGED and "payload_ref" in event and not event["redaction"]["applied"]:
                    self.judged.append(event["payload_ref"])
                head = own
                count += 1
                self._size += len(raw)
                tree.append(line)
        except (orjson.JSONDecodeError, orjson.JSONEncodeError, BadInput, KeyError, TypeError, AttributeError) as error:
            return self._at("event_malformed", count, f"the line is no event: {error}")
        self._head = head
        if last != SEALED:
            return Finding("event_log_unterminated", self._path, f"the last of {count} events is {last or 'none'!r}")
        return None

    def _odd(self, event: Any, line: bytes) -> bool:
        """Anything but the plain shape of an event of this trial; a quick look, `_explain` says what."""
        payload = event.get("payload_ref")
        return (
            self._ids_bytes not in line
            or event["ids"] != self._ids
            or event["attempt"] != self._attempt
            or not _REQUIRED <= event.keys() <= _ALLOWED
            or ("payload_ref" in event and not self._is_listed(payload))
            or _bad_values(event)
        )

    def _is_listed(self, payload: Any) -> bool:
        return isinstance(payload, str) if self._payloads is None else payload in self._payloads

    def _explain(self, event: Json, line: bytes, count: int, last: str) -> Finding:
        if last == SEALED:
            return self._at("event_log_unterminated", count, "events follow after trial.sealed")
        if event["seq"] != count:
            return self._at("event_sequence", count, f"seq is {event['seq']}, {count} is next")
        if event["ids"] != self._ids or event["attempt"] != self._attempt or self._ids_bytes not in line:
            return self._at("event_identity", count, "the event names another trial or attempt")
        payload = event.get("payload_ref")
        if isinstance(payload, str) and not self._is_listed(payload):
            return self._at("payload_unlisted", count, f"{_short(payload)} stands in no line of artifacts.jsonl")
        return self._at("event_malformed", count, "the event does not have the shape of event_envelope_v1")

    def _broken(self, event: Any, line: bytes, count: int) -> Finding:
        """A broken chain; a line that is no canonical JSON, or another trial's, is named as such."""
        if not is_canonical(line):
            return self._at("event_not_canonical", count, "the line is not canonical JSON")
        if event.get("ids") != self._ids or event.get("attempt") != self._attempt:
            return self._at("event_identity", count, "the event is of another trial or attempt")
        return self._at("event_chain_broken", count, "the chain does not lead from the line before to this one")

    def _torn(self, raw: bytes, count: int) -> Finding:
        if len(raw) > MAX_LINE:
            return self._at("too_large", count, f"the line is longer than {MAX_LINE} bytes")
        return self._at("event_malformed", count, "the last line does not end in a newline")

    def _at(self, code: str, count: int, message: str) -> Finding:
        return Finding(code, f"{self._path}:{count + 1}", message)


def _bad_values(event: Json) -> bool:
    redaction, step = event["redaction"], event.get("step_index", 0)
    return (
        event["schema_version"] != SCHEMA_VERSION
        or type(event["seq"]) is not int
        or type(event["attempt"]) is not int
        or type(step) is not int
        or step < 0
        or not event["event_type"]
        or type(event["event_type"]) is not str
        or event["source"] not in _SOURCES
        or type(redaction) is not dict
        or type(redaction.get("applied")) is not bool
        or (len(redaction) > 1 and (len(redaction) > 2 or redaction.get("mode") not in _MODES))
        or _TIME.fullmatch(event["ts"]) is None
        or len(event["hashchain"]) != 2
    )


def _short(reference: str) -> str:
    try:
        return f"artifact {hex_of_reference(reference)[:16]}..."
    except BadInput:
        return f"{reference[:60]!r}"
