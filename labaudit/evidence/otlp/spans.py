"""An export request (protobuf or JSON) to one line of OTLP/JSON and the number of spans in it.

Protobuf is turned into JSON because text can be redacted and read by anyone; ids become hexadecimal, as the OTLP
specification asks of its JSON form. A span without a trace id, a span id or a name is counted as refused.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson

from labaudit.core.strict_json import parse_json, parse_object
from labaudit.errors import BadInput
from labaudit.evidence.otlp.parts import TooManyParts, require_few_json_parts, require_few_protobuf_parts

JSON_LINES = "otlp_jsonl"
_TRACE_ID = re.compile(r"[0-9a-fA-F]{32}")
_SPAN_ID = re.compile(r"[0-9a-fA-F]{16}")
_ID_KEYS = ("traceId", "spanId", "parentSpanId")


class SpanBatch(NamedTuple):
    """One request: its line without newline, the spans that count, and those that do not."""

    line: bytes
    accepted: int
    refused: int


def from_protobuf(data: bytes) -> SpanBatch:
    """The batch in a serialised ExportTraceServiceRequest; BadInput when it is none."""
    # Loaded here: protobuf is needed by trials that export traces and by nothing else.
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    require_few_protobuf_parts(data, ExportTraceServiceRequest.DESCRIPTOR)
    request = ExportTraceServiceRequest()
    try:
        request.ParseFromString(data)
        document: dict[str, Any] = MessageToDict(request, use_integers_for_enums=True)
    except (DecodeError, ValueError, RecursionError) as error:
        raise BadInput(f"is no OTLP protobuf request: {error}"[:300]) from error
    for span in _spans(document):
        _ids_to_hex(span)
        for link in span.get("links", ()):
            _ids_to_hex(link)
    return _batch(document)


def from_json(data: bytes) -> SpanBatch:
    """The batch in an OTLP/JSON request; BadInput when it is none."""
    require_few_json_parts(data)
    return _batch(parse_object(data))


def response(content: str, refused: int) -> bytes:
    """An ExportTraceServiceResponse in the same form as its request."""
    if content == "protobuf":
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service

        answer = service.ExportTraceServiceResponse()
        if refused:
            answer.partial_success.rejected_spans = refused
            answer.partial_success.error_message = REFUSED
        data: bytes = answer.SerializeToString()
        return data
    partial = {"partialSuccess": {"rejectedSpans": str(refused), "errorMessage": REFUSED}} if refused else {}
    return orjson.dumps(partial)


REFUSED = "spans without a trace id, a span id or a name were not kept"


def count_in_file(data: bytes, form: str) -> int | None:
    """The spans in a trace file; None when it is of a format, or of a size in parts, that is not counted here."""
    name = re.sub(r"[^a-z0-9]+", "_", form.lower())
    try:
        if "proto" in name:
            return from_protobuf(data).accepted
        return _count_json(data) if "json" in name else None
    except TooManyParts:
        return None


def _count_json(data: bytes) -> int:
    """Line by line when the first line is a document of its own, else as one document."""
    first, _, rest = data.lstrip().partition(b"\n")
    try:
        require_few_json_parts(first)
        by_line = bool(rest.strip()) and orjson.loads(first) is not None
    except orjson.JSONDecodeError:
        by_line = False
    total = 0
    for part in data.splitlines() if by_line else [data]:
        if part.strip():
            require_few_json_parts(part)
            total += _count_document(parse_json(part))
    return total


def _count_document(document: object) -> int:
    if isinstance(document, list):
        return sum(_count_document(item) for item in document)
    if not isinstance(document, dict):
        return 0
    if "resourceSpans" in document:
        return _batch(document).accepted
    # Exporters that write one span per line put the ids beside the name or under `context`.
    context = document.get("context")
    inner = context if isinstance(context, dict) else document
    has_id = any(isinstance(inner.get(key), str) and inner[key] for key in ("traceId", "trace_id"))
    return int(has_id and isinstance(document.get("name"), str))


def _batch(document: dict[str, Any]) -> SpanBatch:
    if not isinstance(document.get("resourceSpans", []), list):
        raise BadInput("is no OTLP request: resourceSpans is no array")
    accepted = refused = 0
    for scope in _scopes(document):
        found = scope.get("spans") or []
        if not isinstance(found, list):
            raise BadInput("is no OTLP request: spans is no array")
        kept = [span for span in found if _is_span(span)]
        accepted, refused = accepted + len(kept), refused + len(found) - len(kept)
        scope["spans"] = kept
    return SpanBatch(orjson.dumps(document), accepted, refused)


def _scopes(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for resource in document.get("resourceSpans") or ():
        scopes = resource.get("scopeSpans") or () if isinstance(resource, dict) else None
        if scopes is None or not isinstance(scopes, list | tuple) or not all(isinstance(item, dict) for item in scopes):
            raise BadInput("is no OTLP request: scopeSpans is no array of objects")
        yield from scopes


def _spans(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for scope in _scopes(document):
        yield from scope.get("spans") or ()


def _is_span(span: object) -> bool:
    return (
        isinstance(span, dict)
        and _looks_like(span.get("traceId"), _TRACE_ID)
        and _looks_like(span.get("spanId"), _SPAN_ID)
        and isinstance(span.get("name"), str)
    )


def _looks_like(value: object, pattern: re.Pattern[str]) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None and set(value) != {"0"}


def _ids_to_hex(holder: dict[str, Any]) -> None:
    for key in _ID_KEYS:
        if key in holder:
            holder[key] = base64.b64decode(holder[key]).hex()


DECODERS: dict[str, Callable[[bytes], SpanBatch]] = {"protobuf": from_protobuf, "json": from_json}
