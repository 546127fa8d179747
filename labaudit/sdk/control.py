"""The control file to what the runner asks for, as it stands at a step's end."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import NamedTuple

ACTIONS = ("continue", "stop", "checkpoint")


class Control(NamedTuple):
    """One reading of the control file; `version` is the sha256 of its exact bytes."""

    version: str
    action: str
    label: str | None
    seq: int | None


def read_control(path: str) -> Control:
    """What the file says now. A file that is missing or unreadable asks to stop: nobody is in control."""
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(1 << 16)
        value = json.loads(data)
        action = value["action"]
        if action not in ACTIONS:
            raise ValueError(f"unknown action {action!r}")
    except OSError:
        return Control("sha256:" + hashlib.sha256(b"").hexdigest(), "stop", None, None)
    except (ValueError, KeyError, TypeError):
        return Control("sha256:" + hashlib.sha256(data).hexdigest(), "stop", None, None)
    return Control("sha256:" + hashlib.sha256(data).hexdigest(), action, value.get("label"), value.get("control_seq"))


def wait_for_change(path: str, version: str, seconds: float, *, pause: float = 0.005) -> Control:
    """The first reading whose version is another one, or the last reading when the time is up."""
    deadline = time.monotonic() + seconds
    control = read_control(path)
    while control.version == version and time.monotonic() < deadline:
        time.sleep(pause)
        control = read_control(path)
    return control
