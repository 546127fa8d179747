"""A session's folder while it grows: its head first, then chained events, then a seal that `verify` accepts.

A record that a crash left open is closed by the next start: the longest valid prefix of its log is kept, the
interruption is said, and it is sealed like any other.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from labaudit.attest.session_seal import seal_session
from labaudit.attest.signers import Signer
from labaudit.attest.summary import TOOL
from labaudit.core.canonical import canonical_bytes
from labaudit.core.clock import Clock, SystemClock, rfc3339
from labaudit.core.digest import Digest, hash_file
from labaudit.core.redaction import Redactor
from labaudit.engines.protocol import CapturedStream
from labaudit.errors import BadInput, LabauditError
from labaudit.harnesses.acp.client.permissions import Policy
from labaudit.harnesses.acp.wire.text import fit_value
from labaudit.harnesses.acp.wire.transcript import Transcript
from labaudit.records.parts import Tool
from labaudit.records.session import PreviousSession, Session, SessionAllowOnce
from labaudit.store import atomic
from labaudit.store.event_log import EventLog
from labaudit.store.lab_folder import LabFolder
from labaudit.store.session_folder import SessionFolder, log_identity

Kind = Literal["acp_run", "acp_probe", "chat"]
INTERRUPTED = "session.interrupted"


@dataclass(frozen=True)
class SessionPlan:
    """What is known of a session before it starts."""

    kind: Kind
    command: Sequence[str]
    protocol: Literal["acp", "text"]
    dialect: Literal["v1", "kiro"]
    permissions: Policy | Literal["ask"]
    secrets: Mapping[str, str] = field(default_factory=dict)
    chat: str | None = None
    """Platform and chat id; only its digest is written."""
    previous: SessionFolder | None = None


class SessionRecorder:
    """The one writer of a recorded session. Safe to call from several threads."""

    def __init__(self, lab: LabFolder, plan: SessionPlan, *, signer: Signer | None, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._signer = signer
        self._lock = threading.Lock()
        self._sealed: Digest | None = None
        self.redactor = Redactor((), plan.secrets)
        self.folder = _new_folder(lab, self._clock)
        head = session_head(self.folder.session_id, plan, self.redactor, self._clock)
        atomic.write_bytes(self.folder.session, head.to_bytes())
        digest = "sha256:" + hash_file(self.folder.session)[0]
        identity = log_identity(head.session_id, head.kind, digest)
        self._log = EventLog(self.folder.events, identity, clock=self._clock)
        self._held = _hold(self.folder)
        self.transcript = Transcript(self.folder.transcript, clock=self._clock, redactor=self.redactor)
        self.event("session.opened")

    def event(self, event_type: str, payload: object = None, *, source: str = "framework_events") -> None:
        """One event, on the disk before this returns; nothing is taken after the seal."""
        with self._lock:
            if self._sealed is not None:
                return
            reference, redaction = None, None
            if payload is not None:
                clean = self.redactor.apply(canonical_bytes(fit_value(payload)))
                redaction = {"applied": clean.applied}
                reference = self.folder.artifacts.put(clean.data, "application/json", redaction)
            self._log.append(event_type, source=source, payload_ref=reference, redaction=redaction, durable=True)

    def keep(self, data: bytes, content_type: str) -> str:
        """Stores a file of the conversation (an image), redacted; returns its reference."""
        clean = self.redactor.apply(data)
        return self.folder.artifacts.put(clean.data, content_type, {"applied": clean.applied})

    def seal(self, stderr: CapturedStream | None = None, agent_log: CapturedStream | None = None) -> Digest:
        """Ends the record; returns the manifest's digest. Idempotent."""
        with self._lock:
            if self._sealed is None:
                self.transcript.close()
                self.transcript.check()
                for path, stream in ((self.folder.stderr, stderr), (self.folder.agent_log, agent_log)):
                    if stream is not None:
                        atomic.write_bytes(path, stream.rendered())
                self._log.seal(self.folder.events_head)
                self._sealed = seal_session(self.folder, self._signer, clock=self._clock)
                _let_go(self._held)
            return self._sealed


def session_head(session_id: str, plan: SessionPlan, redactor: Redactor, clock: Clock) -> Session:
    """The content of session.json."""
    policy = plan.permissions
    permissions: Literal["deny_all", "ask"] | SessionAllowOnce = "ask"
    if isinstance(policy, Policy):
        kinds = tuple(sorted(policy.allow_once))
        permissions = SessionAllowOnce(allow_once=kinds) if kinds else "deny_all"  # type: ignore[arg-type]
    return Session(
        session_id=session_id,
        kind=plan.kind,
        created_at=rfc3339(clock.now()),
        tool=Tool(**TOOL),
        protocol=plan.protocol,
        dialect=plan.dialect,
        command=tuple(redactor.text(word) or " " for word in plan.command),
        permissions=permissions,
        withheld=tuple(sorted(plan.secrets)),
        chat_digest=Digest.of(plan.chat.encode()) if plan.chat is not None else None,
        previous=_link(plan.previous) if plan.previous is not None else None,
    )


def close_interrupted(lab: LabFolder, signer: Signer | None, clock: Clock | None = None) -> list[str]:
    """Seals every record that a crash left open; returns their ids. A folder without a readable head is left alone."""
    closed = []
    for path in sorted(lab.sessions.iterdir()) if lab.sessions.is_dir() else ():
        folder = SessionFolder(path)
        if not path.is_dir() or folder.sealed or not folder.session.is_file():
            continue
        held = _hold(folder)
        if held is None:
            continue  # someone records it right now
        try:
            _close(folder, signer, clock or SystemClock())
            closed.append(path.name)
        except LabauditError:
            continue
        finally:
            _let_go(held)
    return closed


def _hold(folder: SessionFolder) -> int | None:
    """A lock that dies with its process: whoever holds it is still recording. None when another one has it."""
    try:
        held = os.open(folder.events, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise atomic.explain(error, folder.events) from error
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        return None
    return held


def _let_go(held: int | None) -> None:
    if held is not None:
        os.close(held)


def _close(folder: SessionFolder, signer: Signer | None, clock: Clock) -> None:
    data = atomic.read_bytes(folder.session, max_bytes=1 << 20)
    head = Session.from_bytes(data, where=str(folder.session))
    atomic.remove_leftovers(folder.path)
    if not folder.events_head.is_file():
        log, dropped = EventLog.recover(
            folder.events, log_identity(head.session_id, head.kind, Digest.of(data)), clock=clock
        )
        note = canonical_bytes({"torn_bytes_dropped": dropped})
        log.append(INTERRUPTED, payload_ref=folder.artifacts.put(note, "application/json"), durable=True)
        log.seal(folder.events_head)
    seal_session(folder, signer, clock=clock)


def _link(folder: SessionFolder) -> PreviousSession:
    digest = Digest.from_hex(hash_file(folder.manifest)[0]) if folder.sealed else None
    return PreviousSession(session_id=folder.session_id, manifest_digest=digest)


def _new_folder(lab: LabFolder, clock: Clock) -> SessionFolder:
    for _ in range(100):
        name = f"session-{clock.now():%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
        path: Path = lab.sessions / name
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise atomic.explain(error, path) from error
        return SessionFolder(path)
    raise BadInput("no free name for a session was found", where=str(lab.sessions))
