"""JSON-RPC 2.0 lines to messages and back, with every defect of a hostile peer as a named value.

Requests of the two sides count their ids apart: an id says nothing about direction, a `method` key does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NoReturn

from labaudit.harnesses.acp.wire.framing import Frame
from labaudit.harnesses.acp.wire.text import fit

Id = int | str | None

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REQUEST_CANCELLED = -32800
AUTH_REQUIRED = -32000
RESOURCE_NOT_FOUND = -32002

ERROR_KINDS = {
    PARSE_ERROR: "parse_error",
    INVALID_REQUEST: "invalid_request",
    METHOD_NOT_FOUND: "method_not_found",
    INVALID_PARAMS: "invalid_params",
    INTERNAL_ERROR: "internal_error",
    REQUEST_CANCELLED: "request_cancelled",
    AUTH_REQUIRED: "auth_required",
    RESOURCE_NOT_FOUND: "resource_not_found",
}

Defect = Literal["not_utf8", "not_json", "duplicate_key", "too_deep", "too_long", "batch", "no_object", "bad_shape"]


@dataclass(frozen=True)
class Request:
    """The other side asks and waits for an answer."""

    id: Id
    method: str
    params: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Notification:
    """The other side tells."""

    method: str
    params: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Response:
    """An answer to a request of ours, or to nothing."""

    id: Id
    result: object


@dataclass(frozen=True)
class ErrorResponse:
    """A refusal of a request of ours, or of nothing."""

    id: Id
    code: int
    message: str
    data: object = None

    @property
    def kind(self) -> str:
        """The error's name; codes that no specification names are `other`."""
        return ERROR_KINDS.get(self.code, "other")


@dataclass(frozen=True)
class Malformed:
    """A line that is no message."""

    defect: Defect
    detail: str = ""
    id: Id = None
    answerable: bool = False
    """True when it was a request with a usable id, so that its sender waits."""


Message = Request | Notification | Response | ErrorResponse | Malformed


def read_frame(frame: Frame) -> Message:
    """The message in a framed line."""
    if frame.cut:
        return Malformed("too_long", f"{frame.size} bytes")
    return read_message(frame.data)


def read_message(line: bytes) -> Message:
    """The message in a line; never raises."""
    try:
        value = json.loads(line.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse)
    except UnicodeDecodeError as error:
        return Malformed("not_utf8", f"at byte {error.start}")
    except _DuplicateKey as error:
        return Malformed("duplicate_key", str(error))
    except RecursionError:
        return Malformed("too_deep")
    except ValueError as error:
        return Malformed("not_json", fit(str(error), 200))
    if isinstance(value, list):
        return Malformed("batch", f"an array of {len(value)}; ACP has no batches")
    if not isinstance(value, dict):
        return Malformed("no_object", type(value).__name__)
    return _classify(value)


def _classify(value: dict[str, object]) -> Message:
    if "method" in value:
        return _call(value, value["method"])
    if "id" not in value:
        return Malformed("bad_shape", "neither a method nor an id")
    if not _is_id(value["id"]):
        return Malformed("bad_shape", "the id is neither an integer, text nor null")
    identifier: Id = value["id"]  # type: ignore[assignment]
    error = value.get("error")
    if error is not None:
        code = error.get("code") if isinstance(error, dict) else None
        if not isinstance(error, dict) or not isinstance(code, int) or isinstance(code, bool):
            return ErrorResponse(identifier, INTERNAL_ERROR, "an error without code and message", error)
        return ErrorResponse(identifier, code, fit(error.get("message")) or "no message", error.get("data"))
    if "result" in value:
        return Response(identifier, value["result"])
    return Malformed("bad_shape", "a response with neither result nor error")


def _call(value: dict[str, object], method: object) -> Message:
    has_id = "id" in value
    usable = has_id and _is_id(value["id"])
    identifier: Id = value["id"] if usable else None  # type: ignore[assignment]
    if has_id and not usable:
        return Malformed("bad_shape", "the id is neither an integer, text nor null")
    if not isinstance(method, str) or not method:
        return Malformed("bad_shape", "the method is no text", identifier, usable)
    params = value.get("params")
    if params is not None and not isinstance(params, dict):
        return Malformed("bad_shape", f"params of {fit(method, 80)} are no object", identifier, usable)
    if not has_id:
        return Notification(method, params or {})
    return Request(identifier, method, params or {})


def request_line(identifier: int, method: str, params: Mapping[str, object]) -> bytes:
    """A request of ours, newline included."""
    return _line({"jsonrpc": "2.0", "id": identifier, "method": method, "params": params})


def notification_line(method: str, params: Mapping[str, object]) -> bytes:
    """A notification of ours."""
    return _line({"jsonrpc": "2.0", "method": method, "params": params})


def result_line(identifier: Id, result: object) -> bytes:
    """Our answer."""
    return _line({"jsonrpc": "2.0", "id": identifier, "result": result})


def error_line(identifier: Id, code: int, message: str) -> bytes:
    """Our refusal."""
    return _line({"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": message}})


def _line(value: Mapping[str, object]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A lone surrogate has no UTF-8 form; escaped it is still the same JSON text.
    try:
        return text.encode("utf-8") + b"\n"
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


class _DuplicateKey(Exception):
    """Two values under one key: two readers could see two messages."""


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _DuplicateKey(fit(key, 80))
            seen.add(key)
    return result


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def _is_id(value: object) -> bool:
    return value is None or isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
