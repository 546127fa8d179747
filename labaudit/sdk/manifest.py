"""What a harness says about itself to harness_manifest.json."""

from __future__ import annotations

import hashlib
import platform
import sys
from pathlib import Path
from typing import Any

from .canonical import canonical_json
from .files import timestamp, write_whole

EVENTS = "harness_events.jsonl"
BOUNDARIES = "sdk_boundaries.jsonl"
MANIFEST = "harness_manifest.json"
LEVELS = ("cli_events", "sdk_control", "sdk_full")


def build_manifest(
    level: str, *, name: str, version: str, step_semantics: str, control_path: str, header: bool
) -> dict[str, Any]:
    """The document. Paths are those of a container, where they have fixed names on every engine."""
    if level not in LEVELS:
        raise ValueError(f"level is one of {', '.join(LEVELS)}, not {level!r}")
    document: dict[str, Any] = {
        "schema_version": "harness_manifest_v1",
        "created_at": timestamp(),
        "integration_level": level,
        "harness": {
            "name": name,
            "version": version,
            "exec_digest": exec_digest(),
            "entry_command": [Path(sys.executable).name or "python3", *sys.argv[:1]],
            "runtime": {"python": platform.python_version()},
        },
        "step": {"semantics": step_semantics},
        "hooks": {"schema_version": "hook_events_v1", "events_path": "/out/" + EVENTS, "header_event_emitted": header},
        "control_plane": {
            "mode": "file",
            "path": "/state/" + Path(control_path).name,
            "format_version": "control_plane_v1",
        },
        "tracing": {"mode": "none"},
    }
    if level == "sdk_full":
        document["ext"] = {"sdk": {"boundaries_path": "/out/" + BOUNDARIES}}
    return document


def write_manifest(path: str, document: dict[str, Any]) -> str:
    """Writes the manifest; returns the digest of its bytes, which the stream's header may carry."""
    data = canonical_json(document)
    write_whole(path, data)
    return "sha256:" + hashlib.sha256(data).hexdigest()


def exec_digest() -> str:
    """One digest over path and content of every Python file beside the main script, its folders included."""
    hasher = hashlib.sha256()
    script = Path(sys.argv[0]) if sys.argv and sys.argv[0] else None
    if script is None or not script.is_file():
        hasher.update(" ".join(sys.argv).encode("utf-8", "surrogateescape"))
        return "sha256:" + hasher.hexdigest()
    root = script.resolve().parent
    for path in sorted(root.rglob("*.py")):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        hasher.update(f"{path.relative_to(root).as_posix()}\0{content}\n".encode("utf-8", "surrogateescape"))
    return "sha256:" + hasher.hexdigest()
