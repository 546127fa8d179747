"""What we send, in official v1 or in the `kiro` dialect of early Kiro agents.

The two differ in a few names: the prompt's blocks stand under `prompt` or `content`, a mode under `modeId` or `mode`, a
model under `modelId` or `model`; `session/load` repeats the folder or not; images are inline data or a path.
"""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from labaudit.errors import BadInput
from labaudit.store import atomic

Dialect = Literal["v1", "kiro"]
Params = dict[str, object]

PROTOCOL_VERSION = 1
MAX_IMAGE_BYTES = 10 << 20


def initialize(dialect: Dialect, name: str, version: str) -> Params:
    """We offer no file system, no terminal, no elicitation: what is not offered cannot be asked for rightly."""
    nothing: Params = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "clientCapabilities": {} if dialect == "kiro" else nothing,
        "clientInfo": {"name": name, "version": version},
    }


def new_session(cwd: str, mcp_servers: Sequence[Mapping[str, object]]) -> Params:
    """The same in both dialects."""
    return {"cwd": cwd, "mcpServers": [dict(server) for server in mcp_servers]}


def load_session(
    dialect: Dialect, session_id: str, cwd: str, mcp_servers: Sequence[Mapping[str, object]]
) -> Params:
    """Only for agents that advertise `loadSession`."""
    if dialect == "kiro":
        return {"sessionId": session_id}
    return {"sessionId": session_id, **new_session(cwd, mcp_servers)}


def prompt(dialect: Dialect, session_id: str, blocks: Sequence[Mapping[str, object]]) -> Params:
    """One turn's input."""
    return {"sessionId": session_id, "content" if dialect == "kiro" else "prompt": [dict(block) for block in blocks]}


def cancel(session_id: str) -> Params:
    """The same in both dialects."""
    return {"sessionId": session_id}


def set_mode(dialect: Dialect, session_id: str, mode: str) -> Params:
    """Asks for a mode."""
    return {"sessionId": session_id, "mode" if dialect == "kiro" else "modeId": mode}


def set_model(dialect: Dialect, session_id: str, model: str) -> Params:
    """Asks for a model."""
    return {"sessionId": session_id, "model" if dialect == "kiro" else "modelId": model}


def set_config_option(session_id: str, config_id: str, value: str) -> Params:
    """Asks for one value of a select option."""
    return {"sessionId": session_id, "configId": config_id, "value": value}


def execute_command(session_id: str, command: str) -> Params:
    """Kiro's slash commands."""
    return {"sessionId": session_id, "command": command}


def text_block(text: str) -> Params:
    """A text content block."""
    return {"type": "text", "text": text}


def image_block(dialect: Dialect, path: Path) -> Params:
    """An image: its path in the kiro dialect, its bytes in v1."""
    if dialect == "kiro":
        return {"type": "image", "source": {"type": "file", "path": str(path)}}
    kind = mimetypes.guess_type(path.name)[0] or ""
    if not kind.startswith("image/"):
        raise BadInput("is no image by its name", where=str(path), hint="png, jpeg, gif and webp are images")
    data = atomic.read_bytes(path, max_bytes=MAX_IMAGE_BYTES)
    return {"type": "image", "mimeType": kind, "data": base64.b64encode(data).decode("ascii")}
