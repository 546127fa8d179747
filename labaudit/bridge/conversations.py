"""Which chat goes on with which agent session, in one small file per chat that outlives a restart.

    {"current_agent": "name", "session_id": "sess_abc123", "timestamp": 1704067200.0, "working_directory": "/path"}

Files of the older format carry `conversation_history` and no session id. They are migrated when read: the history moves
to a file of its own beside it, because an agent keeps the history of a session itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from labaudit.core.canonical import canonical_bytes
from labaudit.core.clock import Clock, SystemClock
from labaudit.core.ids import safe_name
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput
from labaudit.store import atomic

MAX_BYTES = 64 << 20
_OLD_KEY = "conversation_history"


@dataclass(frozen=True)
class Conversation:
    """A chat's place in an agent's session; `session_id` is None when the next message starts a new one."""

    current_agent: str
    session_id: str | None
    working_directory: str
    timestamp: float = 0.0


class ConversationStore:
    """The files of one platform's chats."""

    def __init__(self, folder: Path, clock: Clock | None = None) -> None:
        self._folder = folder
        self._clock = clock or SystemClock()

    def path(self, chat: str) -> Path:
        """The file of one chat."""
        return self._folder / f"{safe_name(chat)}.json"

    def load(self, chat: str) -> Conversation | None:
        """What was kept of a chat; an older file is migrated on the way. BadInput when it cannot be read."""
        path = self.path(chat)
        if not path.is_file():
            return None
        value = parse_object(atomic.read_bytes(path, max_bytes=MAX_BYTES), where=str(path))
        conversation = _read(value, path)
        if _OLD_KEY in value:
            history = path.with_suffix(".history.json")
            atomic.write_bytes(history, canonical_bytes(value[_OLD_KEY]), mode=0o600)
            self._write(path, conversation)
        return conversation

    def save(self, chat: str, conversation: Conversation) -> Conversation:
        """Keeps the conversation with the time of now."""
        stamped = Conversation(
            conversation.current_agent,
            conversation.session_id,
            conversation.working_directory,
            self._clock.now().timestamp(),
        )
        self._write(self.path(chat), stamped)
        return stamped

    def _write(self, path: Path, conversation: Conversation) -> None:
        document = {
            "current_agent": conversation.current_agent,
            "timestamp": conversation.timestamp,
            "session_id": conversation.session_id,
            "working_directory": conversation.working_directory,
        }
        atomic.write_bytes(path, canonical_bytes(document), mode=0o600)


def _read(value: dict[str, object], path: Path) -> Conversation:
    agent, session = value.get("current_agent"), value.get("session_id")
    folder, stamp = value.get("working_directory"), value.get("timestamp", 0.0)
    numeric = isinstance(stamp, (int, float)) and not isinstance(stamp, bool) and math.isfinite(stamp)
    if not isinstance(agent, str) or not isinstance(folder, str) or not numeric:
        raise BadInput("is no saved conversation", where=str(path), hint="remove it to start the chat anew")
    if session is not None and not isinstance(session, str):
        raise BadInput("session_id is no text", where=str(path), hint="remove it to start the chat anew")
    return Conversation(agent, session or None, folder, float(stamp))  # type: ignore[arg-type]
