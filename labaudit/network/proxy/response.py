"""The head of a server's answer, rewritten for one answer per connection. Pure.

The server is one that the policy allows, so this is about agreement with the client, not about keeping data in: where
the answer ends, and that nobody waits for a second one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .framing import Body, ChunkedBody
from .rules import Refused

MAX_RESPONSE_HEAD = 64 << 10
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])( [\t\x20-\x7e\x80-\xff]*)?")
_DROPPED = frozenset({b"connection", b"proxy-connection", b"keep-alive", b"upgrade", b"alt-svc"})


@dataclass(frozen=True)
class Response:
    """An answer's head as it is passed on, and how its body ends."""

    status: int
    head: bytes
    body: Body

    @property
    def interim(self) -> bool:
        """100 Continue and the like: another head follows."""
        return self.status < 200


def parse_response(head: bytes, method: str) -> Response:
    """`head` is everything before the empty line. Refused (502) if it is no answer, or switches protocols."""
    lines = head.split(b"\r\n")
    match = _STATUS.fullmatch(lines[0])
    if not match:
        raise Refused("bad_response", "the server's answer is not HTTP/1", 502)
    status = int(match.group(1))
    if status == 101:
        raise Refused("upgrade", "the server switches protocols, which nobody asked for", 502)
    if status < 200:
        return Response(status, head + b"\r\n\r\n", Body(0))
    fields = [line.partition(b":") for line in lines[1:]]
    kept = [line for line, (name, _, _) in zip(lines[1:], fields, strict=True) if name.lower() not in _DROPPED]
    new = b"\r\n".join([lines[0], *kept, b"Connection: close"]) + b"\r\n\r\n"
    return Response(status, new, _body(method, status, [(name.lower(), value.strip()) for name, _, value in fields]))


def _body(method: str, status: int, fields: list[tuple[bytes, bytes]]) -> Body:
    if method == "HEAD" or status in (204, 304):
        return Body(0)
    if any(name == b"transfer-encoding" for name, _ in fields):
        codings = [value.lower() for name, value in fields if name == b"transfer-encoding"]
        return ChunkedBody() if codings == [b"chunked"] else Body(None)
    lengths = {value for name, value in fields if name == b"content-length"}
    if len(lengths) == 1 and re.fullmatch(rb"[0-9]{1,15}", (only := next(iter(lengths)))):
        return Body(int(only))
    return Body(None)
