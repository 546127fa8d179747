"""session.json: what a recorded conversation with an agent is, fixed before its first event."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from labaudit.records.acp_permissions import AcpToolKind
from labaudit.records.base import Record
from labaudit.records.fields import Command, DigestText, EnvName, Many, Name, Timestamp
from labaudit.records.parts import Tool


class SessionAllowOnce(Record):
    """Kinds of tool call that the agent was permitted, each time anew."""

    allow_once: Annotated[Many[AcpToolKind], Field(min_length=1)]


class PreviousSession(Record):
    """The recorded session that this one goes on from; `manifest_digest` is absent when that one was never sealed."""

    session_id: Name
    manifest_digest: DigestText | None = None


class Session(Record):
    """The head of a recorded session; the digest of its bytes starts the session's event chain."""

    schema_version: Literal["session_v1"] = "session_v1"
    session_id: Name
    kind: Literal["acp_run", "acp_probe", "chat"]
    created_at: Timestamp
    tool: Tool
    protocol: Literal["acp", "text"]
    dialect: Literal["v1", "kiro"]
    command: Command
    permissions: Literal["deny_all", "ask"] | SessionAllowOnce
    withheld: Many[EnvName]
    chat_digest: DigestText | None = None
    previous: PreviousSession | None = None
