"""A transcript against the official v1 schema, message by message: each by the definition that its method names."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

SHARED = Path(os.environ.get("LABAUDIT_VECTORS", Path(__file__).parents[4] / "shared" / "vectors"))
SCHEMA = SHARED / "acp-v1" / "schema" / "v1" / "schema.json"
has_schema = pytest.mark.skipif(not SCHEMA.is_file(), reason="the official ACP schema is not beside this checkout")

# method -> (definition of its params, definition of its result)
REQUESTS = {
    "initialize": ("InitializeRequest", "InitializeResponse"),
    "authenticate": ("AuthenticateRequest", "AuthenticateResponse"),
    "session/new": ("NewSessionRequest", "NewSessionResponse"),
    "session/load": ("LoadSessionRequest", "LoadSessionResponse"),
    "session/prompt": ("PromptRequest", "PromptResponse"),
    "session/set_mode": ("SetSessionModeRequest", "SetSessionModeResponse"),
    "session/set_config_option": ("SetSessionConfigOptionRequest", "SetSessionConfigOptionResponse"),
    "session/request_permission": ("RequestPermissionRequest", "RequestPermissionResponse"),
    "fs/read_text_file": ("ReadTextFileRequest", "ReadTextFileResponse"),
    "fs/write_text_file": ("WriteTextFileRequest", "WriteTextFileResponse"),
    "terminal/create": ("CreateTerminalRequest", "CreateTerminalResponse"),
    "elicitation/create": ("CreateElicitationRequest", "CreateElicitationResponse"),
}
NOTIFICATIONS = {"session/cancel": "CancelNotification", "session/update": "SessionNotification"}
OTHER_SIDE = {"in": "out", "out": "in"}


@functools.cache
def validator(definition: str) -> Any:
    document = json.loads(SCHEMA.read_text())
    return jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": document["$defs"]})


def problems(path: Path, *, directions: tuple[str, ...] = ("in", "out")) -> tuple[list[str], int]:
    """What does not conform, and how many messages were held against a definition."""
    asked: dict[tuple[str, Any], str] = {}
    found: list[str] = []
    checked = 0
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        if "line" not in entry:
            continue
        message = json.loads(entry["line"])
        definition, value = _meant(message, entry["dir"], asked)
        if definition is None or entry["dir"] not in directions:
            continue
        checked += 1
        found += [f"{entry['seq']} {definition}: {error.message}" for error in validator(definition).iter_errors(value)]
    return found, checked


def _meant(message: dict[str, Any], direction: str, asked: dict[tuple[str, Any], str]) -> tuple[str | None, Any]:
    method = message.get("method")
    if method in NOTIFICATIONS:
        return NOTIFICATIONS[method], message["params"]
    if method in REQUESTS:
        asked[direction, message["id"]] = method
        return REQUESTS[method][0], message["params"]
    if method is None:
        origin = asked.pop((OTHER_SIDE[direction], message.get("id")), None)
        if origin is not None:
            return ("Error", message["error"]) if "error" in message else (REQUESTS[origin][1], message["result"])
    return None, None
