"""Kiro's `_kiro.dev/*` notifications to values; any other extension is kept by its name."""

from __future__ import annotations

import math
from dataclasses import dataclass

from labaudit.harnesses.acp.wire.text import fit, list_at, text_at
from labaudit.harnesses.acp.wire.updates import MAX_LISTED, Command, read_commands

PREFIX = "_kiro.dev/"
EXECUTE = "_kiro.dev/commands/execute"
OPTIONS = "_kiro.dev/commands/options"
OAUTH = "oauth_request"
_TERMINATIONS = {"_session/terminate", "_kiro.dev/session/terminate", "_kiro.dev/session/terminated"}


@dataclass(frozen=True)
class CommandsAvailable:
    """The slash commands that Kiro offers in a session."""

    commands: tuple[Command, ...]


@dataclass(frozen=True)
class CompactionStatus:
    """Kiro makes room in its context; `progress` is None where it gives none."""

    status: str
    progress: float | None = None


@dataclass(frozen=True)
class ClearStatus:
    """Kiro clears its context."""

    status: str


@dataclass(frozen=True)
class McpEvent:
    """Something about an MCP server: `server_initialized`, `oauth_request` or what else Kiro calls it."""

    kind: str
    server: str
    tools: tuple[str, ...] = ()
    url: str = ""
    error: str = ""


@dataclass(frozen=True)
class SessionTerminated:
    """The agent ended a session by itself."""

    reason: str = ""


@dataclass(frozen=True)
class OtherExtension:
    """An extension that nobody here knows."""

    method: str


Extension = CommandsAvailable | CompactionStatus | ClearStatus | McpEvent | SessionTerminated | OtherExtension


def is_extension(method: str) -> bool:
    """Names that start with an underscore are the agent's own."""
    return method.startswith("_")


def read_extension(method: str, params: dict[str, object]) -> tuple[str | None, Extension]:
    """The session that the notification names, if any, and what it says."""
    session = params.get("sessionId")
    return session if isinstance(session, str) else None, _read(method, params)


def _read(method: str, params: dict[str, object]) -> Extension:
    if method == f"{PREFIX}commands/available":
        return CommandsAvailable(read_commands(list_at(params, "commands")))
    if method == f"{PREFIX}compaction/status":
        return CompactionStatus(text_at(params, "status", limit=100), _fraction(params.get("progress")))
    if method == f"{PREFIX}clear/status":
        return ClearStatus(text_at(params, "status", limit=100))
    if method.startswith(f"{PREFIX}mcp/"):
        tools = tuple(fit(tool, 200) for tool in list_at(params, "tools")[:MAX_LISTED] if isinstance(tool, str))
        return McpEvent(
            kind=fit(method.removeprefix(f"{PREFIX}mcp/"), 80),
            server=text_at(params, "serverName", limit=200),
            tools=tools,
            url=text_at(params, "authUrl", "oauthUrl", "url", limit=4000),
            error=text_at(params, "error", "message", limit=500),
        )
    if method in _TERMINATIONS:
        return SessionTerminated(text_at(params, "reason", limit=500))
    return OtherExtension(fit(method, 120))


def _fraction(value: object) -> float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return min(max(float(value), 0.0), 1.0)
    return None
