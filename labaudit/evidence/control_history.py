"""control.jsonl to what the runner wrote into a trial's control file, in order.

The control file itself lies in a folder that the harness can write to, so it proves nothing; this log lies outside.
"""

from __future__ import annotations

from pathlib import Path

from labaudit.core.canonical import canonical_bytes
from labaudit.core.digest import Digest
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput
from labaudit.evidence.hook_rules import ControlWrite
from labaudit.records.control_plane import ControlFile
from labaudit.store.event_log import read_lines


def control_bytes(control_seq: int, action: str, label: str | None = None) -> bytes:
    """The exact content of a control file; its sha256 is the control_version."""
    value: dict[str, object] = {"control_seq": control_seq, "action": action}
    if label is not None:
        value["label"] = label
    return ControlFile.from_json({"format_version": "control_plane_v1", **value}, where="control file").to_bytes()


def control_write(control_seq: int, action: str, label: str | None = None) -> ControlWrite:
    """The history entry of such a content."""
    version = Digest.of(control_bytes(control_seq, action, label))
    return ControlWrite(control_seq, version, action, label)


def history_line(write: ControlWrite, *, ts: str, by: str) -> dict[str, object]:
    """One line of control.jsonl."""
    line: dict[str, object] = {
        "control_seq": write.control_seq,
        "control_version": write.control_version,
        "action": write.action,
        "ts": ts,
        "by": by,
    }
    if write.label is not None:
        line["label"] = write.label
    return line


def read_control_history(path: Path) -> tuple[ControlWrite, ...] | None:
    """What the runner wrote; None when there is no log. A version that its own entry does not give is BadInput."""
    if not path.is_file():
        return None
    writes: list[ControlWrite] = []
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{path.name}:{number}"
        value = parse_object(line, where=where)
        try:
            write = control_write(_integer(value["control_seq"]), str(value["action"]), _label(value.get("label")))
        except (KeyError, TypeError) as error:
            raise BadInput("is no entry of a control log", where=where) from error
        if value.get("control_version") != write.control_version or canonical_bytes(value) != line:
            raise BadInput("names another control_version than its content has", where=where)
        writes.append(write)
    return tuple(writes)


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("no integer")
    return value


def _label(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError("no text")
    return value
