"""An agent's own log file to a bounded, redacted part of its record.

Kiro writes a log where `KIRO_CHAT_LOG_FILE` says. It is written to a private folder while the agent runs and taken over
when the record is sealed, so that no secret in it reaches the record.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path

from labaudit.core.redaction import Redactor
from labaudit.engines.protocol import CapturedStream
from labaudit.harnesses.acp.client.capture import CHUNK, Capture
from labaudit.harnesses.acp.wire.dialect import Dialect

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class AgentLog:
    """The place of one agent process's log; agents that keep none have none."""

    def __init__(self, dialect: Dialect) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="labaudit-log-")) if dialect == "kiro" else None

    @property
    def environment(self) -> dict[str, str]:
        """Variables that make the agent write its log."""
        if self._folder is None:
            return {}
        return {"KIRO_LOG_LEVEL": "debug", "KIRO_CHAT_LOG_FILE": str(self._folder / "chat.log")}

    def take(self, redactor: Redactor) -> CapturedStream | None:
        """The log as far as it is kept, and the end of its place; None when there is none."""
        if self._folder is None:
            return None
        try:
            return _captured(self._folder / "chat.log", redactor)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def _captured(path: Path, redactor: Redactor) -> CapturedStream | None:
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        return None
    capture = Capture()
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            return None
        while chunk := stream.read(CHUNK):
            capture.feed(chunk)
    return capture.captured(redactor)
