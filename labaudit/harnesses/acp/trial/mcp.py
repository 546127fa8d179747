"""MCP servers of the spec to the shape that `session/new` takes; an agent is told of no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labaudit.records.resolved_runtime import ResolvedMcpServer


def mcp_servers(servers: Sequence[ResolvedMcpServer] | None) -> list[dict[str, object]]:
    """One entry per server: stdio by command, http and sse by URL."""
    return [_server(server.to_json()) for server in servers or ()]


def _server(given: Mapping[str, object]) -> dict[str, object]:
    if given.get("url"):
        kind = given.get("type") or "http"
        return {"type": kind, "name": given["name"], "url": given["url"], "headers": _pairs(given.get("headers"))}
    return {
        "name": given["name"],
        "command": given.get("command") or "",
        "args": list(given.get("args") or ()),  # type: ignore[call-overload]
        "env": _pairs(given.get("env")),
    }


def _pairs(values: object) -> list[dict[str, str]]:
    items = values.items() if isinstance(values, Mapping) else ()
    return [{"name": str(name), "value": str(value)} for name, value in sorted(items)]
