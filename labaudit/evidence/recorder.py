"""What the framework saw, with its payload, to a chained line of events.jsonl.

A payload never stands in the log: it is redacted, put into the artifact store and named by its reference. The recorder
remembers every reference with its role, for the trial's artifacts.jsonl.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import orjson

from labaudit.core.canonical import canonical_bytes
from labaudit.core.redaction import Redactor
from labaudit.store.artifact_store import ArtifactStore
from labaudit.store.event_log import EventLog

JSON = "application/json"
EVENT_PAYLOAD = "event payload"


class Recorder:
    """The one writer of a trial attempt's events and event payloads."""

    def __init__(self, log: EventLog, store: ArtifactStore, redactor: Redactor | None = None) -> None:
        self.log = log
        self.store = store
        self.redactor = redactor or Redactor()
        self.references: dict[str, str] = {}
        """Artifact reference -> role, of everything that was put through this recorder."""

    def record(
        self,
        event_type: str,
        payload: bytes | Mapping[str, object] | None = None,
        *,
        source: str = "framework_events",
        step_index: int | None = None,
        content_type: str = JSON,
        durable: bool = False,
    ) -> int:
        """Adds one event and returns its seq; a mapping is stored as canonical JSON."""
        if payload is None:
            return self.log.append(event_type, source=source, step_index=step_index, durable=durable)
        data = payload if isinstance(payload, bytes) else canonical_bytes(dict(payload))
        kept = self.redactor.apply(data)
        redaction: dict[str, object] = {"applied": kept.applied}
        reference = self.store.put(kept.data, content_type, redaction, durable=durable)
        self.references.setdefault(reference, EVENT_PAYLOAD)
        return self.log.append(
            event_type,
            source=source,
            step_index=step_index,
            payload_ref=reference,
            redaction=redaction,
            durable=durable,
        )

    def keep(self, data: bytes, role: str, content_type: str = "application/octet-stream") -> str:
        """Puts redacted bytes into the store under a role of their own, without an event."""
        kept = self.redactor.apply(data)
        reference = self.store.put(kept.data, content_type, {"applied": kept.applied})
        self.references[reference] = role
        return reference

    def copy_hook_events(self, stream: Path, *, redacted: bool = False) -> int:
        """One event per line of a valid, already redacted hook stream, in order; returns how many.

        All of them name the same payload, the stream itself: the k-th event from the hooks is its k-th line. One
        artifact for a stream keeps a million events from becoming two million files.
        """
        redaction: dict[str, object] = {"applied": redacted}
        with stream.open("rb") as whole:
            reference = self.store.put(whole, "application/jsonl", redaction, durable=False)
        self.references[reference] = "hook events"
        append, count = self.log.append, 0
        with stream.open("rb") as lines:
            for line in lines:
                event = orjson.loads(line)
                append(
                    event["event_type"],
                    source="hooks",
                    step_index=event.get("step_index"),
                    payload_ref=reference,
                    redaction=redaction,
                )
                count += 1
        return count
