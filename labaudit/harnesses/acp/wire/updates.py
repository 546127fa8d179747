"""`session/update` of either dialect to values.

v1 names an update by `sessionUpdate: agent_message_chunk`, the kiro dialect by `type: AgentMessageChunk` with its
fields spelled otherwise. Only named fields are read; `_meta` is never looked at, whatever it imitates. A field of the
wrong type is absent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from labaudit.harnesses.acp.wire.text import fit, list_at, object_at, text_at

Voice = Literal["agent", "thought", "user"]
Status = Literal["pending", "in_progress", "completed", "failed"]
TERMINAL: frozenset[str] = frozenset({"completed", "failed"})
KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
MAX_CALL_ID = 200
MAX_LISTED = 500

_STATUSES: dict[str, Status] = {
    "pending": "pending",
    "in_progress": "in_progress",
    "running": "in_progress",
    "completed": "completed",
    "success": "completed",
    "failed": "failed",
    "error": "failed",
    "cancelled": "failed",
}
# Kiro names its tools and gives no kind; these are the ones whose kind is plain from the name.
_KIRO_KINDS = {"execute_bash": "execute", "fs_read": "read", "fs_write": "edit", "web_fetch": "fetch", "grep": "search"}


@dataclass(frozen=True)
class Chunk:
    """A piece of a message."""

    voice: Voice
    text: str
    content_type: str = "text"


@dataclass(frozen=True)
class ToolNews:
    """A tool call that starts or changes; what the agent did not say is None."""

    call_id: str
    title: str | None = None
    kind: str | None = None
    status: Status | None = None
    first: bool = False
    """The agent announced it as a new call."""


@dataclass(frozen=True)
class TurnEnd:
    """The kiro dialect's own signal; the prompt's response is what ends a turn."""


@dataclass(frozen=True)
class Plan:
    """The agent's plan, as far as its length goes; its text stays in the transcript."""

    entries: int


@dataclass(frozen=True)
class Command:
    """A slash command that the agent offers."""

    name: str
    description: str = ""
    subcommands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Commands:
    """All slash commands that the agent offers now."""

    commands: tuple[Command, ...]


@dataclass(frozen=True)
class ModeNow:
    """The agent says which mode it is in."""

    mode_id: str


@dataclass(frozen=True)
class OptionsNow:
    """The agent says which options it has and how they stand."""

    options: tuple[ConfigOption, ...]


@dataclass(frozen=True)
class ConfigOption:
    """One select option."""

    id: str
    category: str
    current: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class UsageNow:
    """The agent's own account of its context and cost."""

    used: int
    size: int
    cost: float | None = None
    currency: str = ""


@dataclass(frozen=True)
class Unknown:
    """An update of no known kind."""

    name: str


Update = Chunk | ToolNews | TurnEnd | Plan | Commands | ModeNow | OptionsNow | UsageNow | Unknown


def read_update(params: dict[str, object]) -> tuple[str | None, Update]:
    """The session that an update names, and what it says."""
    session = params.get("sessionId")
    update = object_at(params, "update")
    name = update.get("sessionUpdate", update.get("type"))
    session_id = session if isinstance(session, str) else None
    return session_id, _read(name, update) if isinstance(name, str) else Unknown("")


def _read(name: str, update: dict[str, object]) -> Update:
    if name in ("agent_message_chunk", "AgentMessageChunk"):
        return _chunk("agent", update)
    if name in ("agent_thought_chunk", "AgentThoughtChunk"):
        return _chunk("thought", update)
    if name in ("user_message_chunk", "UserMessageChunk"):
        return _chunk("user", update)
    if name in ("tool_call", "ToolCall", "tool_call_update", "ToolCallUpdate"):
        news = read_tool(update, first=name in ("tool_call", "ToolCall"))
        return news or Unknown(name)
    if name in ("TurnEnd", "turn_end"):
        return TurnEnd()
    if name in ("plan", "Plan"):
        return Plan(len(list_at(update, "entries")))
    return _read_state(name, update)


def _read_state(name: str, update: dict[str, object]) -> Update:
    if name == "available_commands_update":
        return Commands(read_commands(list_at(update, "availableCommands")))
    if name == "current_mode_update":
        return ModeNow(text_at(update, "currentModeId", "modeId", limit=200))
    if name == "config_option_update":
        return OptionsNow(read_options(list_at(update, "configOptions")))
    if name == "usage_update":
        return _usage(update)
    return Unknown(fit(name, 80))


def _chunk(voice: Voice, update: dict[str, object]) -> Chunk:
    content = update.get("content")
    if isinstance(content, str):
        return Chunk(voice, content)
    block = content if isinstance(content, dict) else {}
    kind = fit(block.get("type"), 40) or "none"
    text = block.get("text")
    return Chunk(voice, text if kind == "text" and isinstance(text, str) else "", kind)


def read_tool(fields: dict[str, object], *, first: bool = False) -> ToolNews | None:
    """A tool call of either dialect; None when it has no id to know it by."""
    call_id = text_at(fields, "toolCallId", "id", limit=MAX_CALL_ID)
    if not call_id:
        return None
    name = text_at(fields, "name", limit=200)
    kind = fields.get("kind", _KIRO_KINDS.get(name) if name else None)
    status = fields.get("status")
    return ToolNews(
        call_id=call_id,
        title=text_at(fields, "title", limit=200) or name or None,
        kind=kind if isinstance(kind, str) and kind in KINDS else None,
        status=_STATUSES.get(status) if isinstance(status, str) else None,
        first=first,
    )


def read_commands(items: list[object]) -> tuple[Command, ...]:
    """Slash commands; names carry their slash in both dialects' records here."""
    found = []
    for item in items[:MAX_LISTED]:
        name = text_at(item, "name", limit=100)
        if name:
            below = tuple(fit(sub, 100) for sub in list_at(item, "subcommands")[:MAX_LISTED] if isinstance(sub, str))
            found.append(Command("/" + name.lstrip("/"), text_at(item, "description", limit=300), below))
    return tuple(found)


def read_options(items: list[object]) -> tuple[ConfigOption, ...]:
    """Select options, groups flattened; booleans are no modes or models and are left out."""
    found = []
    for item in items[:MAX_LISTED]:
        option_id = text_at(item, "id", limit=200)
        if option_id and isinstance(item, dict) and item.get("type", "select") == "select":
            values = tuple(_option_values(list_at(item, "options")))
            current, category = text_at(item, "currentValue", limit=200), text_at(item, "category", limit=80)
            found.append(ConfigOption(option_id, category, current, values))
    return tuple(found)


def _option_values(items: list[object]) -> list[str]:
    values: list[str] = []
    for item in items[:MAX_LISTED]:
        nested = list_at(item, "options")
        if nested:
            values.extend(text_at(inner, "value", limit=200) for inner in nested[:MAX_LISTED])
        else:
            values.append(text_at(item, "value", limit=200))
    return [value for value in values if value]


def _usage(update: dict[str, object]) -> Update:
    used, size = update.get("used"), update.get("size")
    cost = object_at(update, "cost")
    amount = cost.get("amount")
    known = isinstance(amount, (int, float)) and not isinstance(amount, bool) and math.isfinite(amount)
    return UsageNow(
        used if isinstance(used, int) else 0,
        size if isinstance(size, int) else 0,
        float(amount) if known else None,  # type: ignore[arg-type]
        text_at(cost, "currency", limit=10),
    )
