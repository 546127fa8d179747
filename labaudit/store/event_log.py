"""Events to an append-only file of chained canonical lines, and back.

Lines are buffered; `durable=True` (used at step ends and stage ends) flushes and fsyncs. After a crash
`EventLog.recover` keeps the longest valid prefix. `seal` writes `events.head`, which binds the file's bytes, chain head
and tree root.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import orjson

from labaudit.core import hashchain
from labaudit.core.canonical import is_canonical
from labaudit.core.clock import Clock, SystemClock, rfc3339
from labaudit.core.merkle import TreeHasher
from labaudit.errors import BadInput, Contradiction
from labaudit.store import atomic

SEALED = "trial.sealed"
SCHEMA_VERSION = "event_envelope_v1"
MAX_LINE = 1 << 20
_FLUSH_BYTES = 1 << 18


@dataclass(frozen=True)
class LogIdentity:
    """What a log belongs to; its chain starts from these."""

    run_id: str
    trial_id: str
    variant_id: str
    task_id: str
    repl_idx: int
    attempt: int
    resolved_digest: str

    @property
    def ids(self) -> dict[str, object]:
        """The `ids` object that every event carries."""
        return {
            "run_id": self.run_id,
            "trial_id": self.trial_id,
            "variant_id": self.variant_id,
            "task_id": self.task_id,
            "repl_idx": self.repl_idx,
        }

    @property
    def genesis(self) -> str:
        """`prev` of the first event."""
        return hashchain.genesis(self.run_id, self.trial_id, self.attempt, self.resolved_digest)


class ChainState:
    """Running totals over the lines of a log: count, size, file hash, chain head, tree."""

    __slots__ = ("_file", "_tree", "count", "head", "size")

    def __init__(self, genesis: str) -> None:
        self.count = 0
        self.size = 0
        self.head = genesis
        self._file = sha256()
        self._tree = TreeHasher()

    def add(self, line: bytes, own: str) -> None:
        """Takes in one line (without its newline) whose chain hash is `own`."""
        self.count += 1
        self.size += len(line) + 1
        self.head = own
        self._file.update(line)
        self._file.update(b"\n")
        self._tree.append(line)

    def totals(self) -> dict[str, object]:
        """The fields that `events.head` and `trial_record.json` share."""
        return {
            "count": self.count,
            "size": self.size,
            "sha256": self._file.copy().hexdigest(),
            "head": self.head,
            "tree_root": self._tree.root().hex(),
        }


class EventLog:
    """The writer of one trial attempt's `events.jsonl`."""

    def __init__(self, path: Path, identity: LogIdentity, *, clock: Clock | None = None) -> None:
        self.path = path
        self.identity = identity
        self._clock = clock or SystemClock()
        self._ids = identity.ids
        self._buffer: list[bytes] = []
        self._pending = 0
        self._state = ChainState(identity.genesis)
        self._sealed = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise atomic.explain(error, path) from error

    @classmethod
    def recover(cls, path: Path, identity: LogIdentity, *, clock: Clock | None = None) -> tuple[EventLog, int]:
        """A writer that goes on after the longest valid prefix, and the number of bytes that were cut off."""
        keep, state, last_type = valid_prefix(path, identity)
        dropped = path.stat().st_size - keep if path.exists() else 0
        if dropped:
            os.truncate(path, keep)
        log = cls(path, identity, clock=clock)
        log._state = state
        log._sealed = last_type == SEALED
        return log, dropped

    @property
    def sealed(self) -> bool:
        """Whether `trial.sealed` stands in it."""
        return self._sealed

    @property
    def count(self) -> int:
        """Events so far."""
        return self._state.count

    def events(self) -> Iterator[dict[str, object]]:
        """All events so far, those that were not yet flushed included."""
        yield from read_events(self.path)
        for line in self._buffer:
            yield orjson.loads(line)

    def append(
        self,
        event_type: str,
        *,
        source: str = "framework_events",
        step_index: int | None = None,
        payload_ref: str | None = None,
        redaction: Mapping[str, object] | None = None,
        durable: bool = False,
    ) -> int:
        """Adds one event and returns its seq."""
        if self._sealed:
            raise BadInput("a sealed event log takes no more events", where=str(self.path))
        seq = self._state.count
        event: dict[str, object] = {
            "schema_version": SCHEMA_VERSION,
            "seq": seq,
            "ts": rfc3339(self._clock.now()),
            "event_type": event_type,
            "ids": self._ids,
            "attempt": self.identity.attempt,
            "source": source,
            "redaction": dict(redaction) if redaction else {"applied": False},
        }
        if step_index is not None:
            event["step_index"] = step_index
        if payload_ref is not None:
            event["payload_ref"] = payload_ref
        line, own = hashchain.link(self._state.head, event)
        self._state.add(line, own)
        self._buffer.append(line)
        self._pending += len(line)
        if durable or self._pending > _FLUSH_BYTES:
            self.flush(durable=durable)
        return seq

    def flush(self, *, durable: bool = True) -> None:
        """Hands all lines to the operating system, and to the disk when `durable`."""
        try:
            if self._buffer:
                data = b"\n".join(self._buffer) + b"\n"
                view = memoryview(data)
                while view:
                    view = view[self._file.write(view) :]
                self._buffer.clear()
                self._pending = 0
            if durable:
                os.fsync(self._file.fileno())
        except OSError as error:
            raise atomic.explain(error, self.path) from error

    def seal(self, head_path: Path, *, durable: bool = True) -> dict[str, object]:
        """Appends `trial.sealed`, writes `events.head` and returns its content."""
        if not self._sealed:
            self.append(SEALED)
            self._sealed = True
        self.flush(durable=durable)
        head = head_document(self.identity, self._state)
        atomic.write_json(head_path, head, durable=durable)
        self._file.close()
        return head

    def close(self) -> None:
        """Flushes and closes without sealing."""
        if not self._file.closed:
            self.flush()
            self._file.close()


def head_document(identity: LogIdentity, state: ChainState) -> dict[str, object]:
    """The content of `events.head`."""
    return {
        "domain": hashchain.EVENTS_DOMAIN,
        "run_id": identity.run_id,
        "trial_id": identity.trial_id,
        "attempt": identity.attempt,
        "resolved_digest": identity.resolved_digest,
        **state.totals(),
    }


def valid_prefix(path: Path, identity: LogIdentity) -> tuple[int, ChainState, str]:
    """How many bytes of the log are whole, canonical, chained lines; their totals; the last event's type."""
    state = ChainState(identity.genesis)
    last_type = ""
    if not path.exists():
        return 0, state, last_type
    with path.open("rb") as stream:
        for raw in stream:
            line = raw[:-1]
            if not raw.endswith(b"\n") or not is_canonical(line):
                break
            try:
                body, prev, own = hashchain.split(line)
            except BadInput:
                break
            event = orjson.loads(body)
            if (
                prev != state.head
                or own != hashchain.EventHasher.hash_prev(prev, body)
                or event.get("seq") != state.count
                or event.get("ids") != identity.ids
            ):
                break
            last_type = event.get("event_type", "")
            state.add(line, own)
    return state.size, state, last_type


def read_lines(path: Path, *, max_line: int = MAX_LINE) -> Iterator[bytes]:
    """The lines of a JSONL file without their newlines, one at a time; a huge or unended line is BadInput."""
    try:
        with path.open("rb") as stream:
            number = 0
            while raw := stream.readline(max_line + 1):
                number += 1
                if not raw.endswith(b"\n"):
                    what = f"line is longer than {max_line} bytes" if len(raw) > max_line else "last line is torn"
                    raise BadInput(what, where=f"{path}:{number}")
                yield raw[:-1]
    except FileNotFoundError as error:
        raise BadInput("there is no such file", where=str(path)) from error
    except OSError as error:
        raise atomic.explain(error, path) from error


def read_events(path: Path) -> Iterator[dict[str, object]]:
    """The events of a log as values, in order, without checking the chain (verify does that)."""
    for number, line in enumerate(read_lines(path), start=1):
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise BadInput(f"is no JSON: {error}", where=f"{path}:{number}") from error


def check_chain(path: Path, identity: LogIdentity, *, round_trip: bool = True) -> ChainState:
    """Recomputes chain and tree over the stored bytes; Contradiction names the first line that breaks."""
    state = ChainState(identity.genesis)
    hash_prev = hashchain.EventHasher.hash_prev
    for number, line in enumerate(read_lines(path), start=1):
        body, prev, own = hashchain.split(line)
        if prev != state.head or hash_prev(prev, body) != own:
            raise Contradiction("the event chain breaks here", where=f"{path}:{number}")
        if round_trip and not is_canonical(line):
            raise Contradiction("the event is not in canonical form", where=f"{path}:{number}")
        state.add(line, own)
    return state


class EventIndex:
    """Lookup of events by seq, by byte offset, without keeping the events in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offsets: list[int] = []
        offset = 0
        for line in read_lines(path):
            self._offsets.append(offset)
            offset += len(line) + 1

    def __len__(self) -> int:
        return len(self._offsets)

    def at(self, seq: int) -> dict[str, object]:
        """The event with this seq, or BadInput."""
        if not 0 <= seq < len(self._offsets):
            raise BadInput(f"there is no event {seq}; the log has {len(self._offsets)}", where=str(self._path))
        with self._path.open("rb") as stream:
            stream.seek(self._offsets[seq])
            event: dict[str, object] = orjson.loads(stream.readline())
        if event.get("seq") != seq:
            raise Contradiction(f"event {seq} carries seq {event.get('seq')}", where=f"{self._path}:{seq + 1}")
        return event
