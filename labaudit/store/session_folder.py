"""A recorded session's folder to its files: every path name of a session is written here and nowhere else.

    session.json             session_v1: what the session is, written first; its digest starts the event chain
    acp_transcript.jsonl     every line in both directions as it was, redacted
    stderr.log, agent.log    what the agent wrote to stderr and, where it keeps one, to its own log: head and tail
    events.jsonl             event_envelope_v1 lines: run_id and trial_id are the session's id, attempt is 1, and the
                             digest of session.json stands where a trial has its resolved digest
    events.head              events_head_v1
    artifacts/               payloads of the events
    manifest.json            manifest_v1: every file above and every artifact; the run tree has one leaf, events.head
    attestations/session.sigstore.json    a signature over the manifest, where the lab signs
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from labaudit.store.artifact_store import ArtifactStore
from labaudit.store.event_log import LogIdentity

VARIANT = "session"


class SessionFolder:
    """The files of one recorded session."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.session = path / "session.json"
        self.transcript = path / "acp_transcript.jsonl"
        self.stderr = path / "stderr.log"
        self.agent_log = path / "agent.log"
        self.events = path / "events.jsonl"
        self.events_head = path / "events.head"
        self.artifacts_folder = path / "artifacts"
        self.manifest = path / "manifest.json"
        self.attestations = path / "attestations"
        self.bundle = self.attestations / "session.sigstore.json"
        self.artifacts = ArtifactStore(self.artifacts_folder)

    @property
    def session_id(self) -> str:
        """The folder's name; a renamed folder is still the session that its manifest names."""
        return self.path.name

    @property
    def sealed(self) -> bool:
        """A session with a manifest is never changed again."""
        return self.manifest.is_file()

    def files(self) -> Iterator[Path]:
        """Files that the manifest lists: all but itself and attestations/, sorted by path."""
        for path in sorted(self.path.rglob("*")):
            apart = path == self.manifest or self.attestations in path.parents
            if not apart and path.is_file() and not path.is_symlink():
                yield path


def log_identity(session_id: str, kind: str, session_digest: str) -> LogIdentity:
    """What the event chain of a session starts from."""
    return LogIdentity(session_id, session_id, VARIANT, kind, 0, 1, session_digest)
