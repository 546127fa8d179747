"""sdk_boundaries.jsonl to a verdict: is every model and tool call of the hook stream recorded, in order, unbroken?

A boundary is one line: what was asked, what came back, and the hash that chains it to the line before. The last line
says how many there are, so that a record that was cut off shows. Both files are read side by side, in flat memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import orjson

from labaudit.core.canonical import canonical_bytes
from labaudit.core.digest import sha256_hex
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput
from labaudit.evidence.hook_rules import MODEL_CALL, TOOL_CALL
from labaudit.store.event_log import read_lines

DOMAIN = "labaudit/boundaries/v1"
MAX_LINE = 16 << 20
MAX_PARTS = 500_000
END = "end"
KINDS = {"model": MODEL_CALL, "tool": TOOL_CALL, "value": ""}
"""Kind of a boundary -> the hook event that goes with it; a recorded value (a clock, a random number) has none."""


@dataclass(frozen=True)
class BoundaryRecord:
    """What the file shows. `recorded` counts lines before the first defect."""

    present: bool
    recorded: int = 0
    complete: bool = False
    problem: str = ""


class _Broken(Exception):
    """Carries the first defect and the number of sound boundaries before it."""


def first_link(ids: Mapping[str, object]) -> str:
    """`prev` of the first boundary: a record cannot be moved to another trial."""
    return sha256_hex(canonical_bytes([DOMAIN, ids["run_id"], ids["trial_id"]]))


def judge_boundaries(path: Path, hook_stream: Path, ids: Mapping[str, object]) -> BoundaryRecord:
    """The record at `path` held against the calls in a valid hook stream."""
    if not path.is_file():
        return BoundaryRecord(False, problem="no causal boundary was recorded")
    counted = _Counter()
    try:
        calls = _boundary_calls(path, ids, counted)
        for ours, theirs in zip_longest(calls, _hook_calls(hook_stream)):
            if ours != theirs:
                raise _Broken(_difference(ours, theirs))
    except (_Broken, BadInput) as error:
        return BoundaryRecord(True, counted.sound, False, error.what if isinstance(error, BadInput) else str(error))
    return BoundaryRecord(True, counted.sound, True)


class _Counter:
    sound = 0


_Call = tuple[str, str, int | None]


def _boundary_calls(path: Path, ids: Mapping[str, object], counted: _Counter) -> Iterator[_Call]:
    """(event type, call id, step) of each recorded call; _Broken at the first line that does not hold."""
    prev, ended = first_link(ids), False
    for number, line in enumerate(read_lines(path, max_line=MAX_LINE), start=1):
        where = f"line {number}"
        if line.count(b"{") + line.count(b"[") > MAX_PARTS:
            raise _Broken(f"{where} has more than {MAX_PARTS} objects and arrays")
        value: dict[str, Any] = parse_object(line, where=where)
        own = value.pop("self", None)
        if ended:
            raise _Broken(f"{where} stands after the end of the record")
        if value.get("prev") != prev or own != sha256_hex(canonical_bytes(value)):
            raise _Broken(f"{where} breaks the chain of boundaries")
        prev = own
        if value.get("kind") == END:
            ended = True
            if value.get("count") != counted.sound:
                raise _Broken(f"the record ends at {counted.sound} boundaries and says {value.get('count')}")
            continue
        call = _call(value, counted.sound, where)
        counted.sound += 1
        if call[0]:
            yield call
    if not ended:
        raise _Broken("the record of boundaries has no end")


def _call(value: Mapping[str, Any], expected: int, where: str) -> _Call:
    kind, index = value.get("kind"), value.get("boundary_index")
    if kind not in KINDS or not isinstance(value.get("call_id"), str):
        raise _Broken(f"{where} is no boundary")
    if index != expected:
        raise _Broken(f"{where} has boundary_index {index}, not {expected}")
    if "request" not in value or ("response" in value) == ("error" in value):
        raise _Broken(f"{where} lacks its request, or does not say what came back")
    if value.get("request_digest") != "sha256:" + sha256_hex(canonical_bytes(value["request"])):
        raise _Broken(f"{where} carries the digest of another request")
    return KINDS[kind], value["call_id"], value.get("step_index")


def _hook_calls(path: Path) -> Iterator[_Call]:
    # The stream is valid, so every line is bounded JSON; its last line may lack a newline.
    with path.open("rb") as stream:
        for line in stream:
            event = orjson.loads(line)
            if event["event_type"] in (MODEL_CALL, TOOL_CALL):
                yield event["event_type"], event["call_id"], event.get("step_index")


def _difference(ours: _Call | None, theirs: _Call | None) -> str:
    if ours is None and theirs is not None:
        return f"{theirs[0]} {theirs[1]} has no recorded boundary"
    if theirs is None and ours is not None:
        return f"boundary {ours[1]} belongs to no event of the hook stream"
    return f"boundary {ours and ours[1]} stands where the hook stream has {theirs and theirs[1]}"
