"""The head of one HTTP/1 request, read strictly. Pure: bytes in, a request or a refusal out.

Everything that two parsers could read in two ways is refused: bare line feeds, folded headers, spaces before colons,
two lengths, length and chunks together. The proxy and the server behind it must never disagree on where a request ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .rules import Refused, Target, parse_authority

MAX_HEAD = 16 << 10
MAX_HEADERS = 100
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_TARGET = re.compile(rb"[\x21-\x7e]+")
_BARE_LINE_FEED = re.compile(rb"(?<!\r)\n")
# Meant for one hop only, or for the proxy itself.
_HOP = frozenset({b"connection", b"proxy-connection", b"keep-alive", b"te", b"trailer", b"upgrade", b"host",
                  b"proxy-authorization", b"proxy-authenticate"})  # fmt: skip
_FRAMING = frozenset({b"content-length", b"transfer-encoding", b"host"})

Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True)
class Request:
    """A request that may go on to the policy."""

    method: str
    target: Target
    path: bytes
    headers: Headers
    length: int | None
    """Bytes of body; None for chunks."""
    version: bytes = b"HTTP/1.1"

    @property
    def is_connect(self) -> bool:
        return self.method == "CONNECT"

    def head(self) -> bytes:
        """The head to send on: origin form, our own Host, one request per connection."""
        port = b"" if self.target.port == 80 else b":%d" % self.target.port
        lines = [b"%s %s %s" % (self.method.encode(), self.path, self.version)]
        lines.append(b"Host: " + self.target.host.encode() + port)
        dropped = _HOP | set(_listed(self.headers, b"connection"))
        lines += [name + b": " + value for name, value in self.headers if name.lower() not in dropped]
        lines.append(b"Connection: close")
        return b"\r\n".join(lines) + b"\r\n\r\n"


def head_is_complete(data: bytes) -> bool:
    """Whether the empty line has come. Refuses at once what can never become a head, so that nobody waits for it."""
    if data[:1] and not _TOKEN.match(data[:1]):
        raise Refused("not_http", "what came is not an HTTP request", 400)
    head, end, _ = data.partition(b"\r\n\r\n")
    if _BARE_LINE_FEED.search(head):
        raise Refused("bad_line_end", "bare LF in the request head", 400)
    if len(head) > MAX_HEAD:
        raise Refused("head_too_large", f"the request head is longer than {MAX_HEAD} bytes", 431)
    return bool(end)


def parse_head(head: bytes) -> Request:
    """`head` is everything before the empty line, without it."""
    lines = head.split(b"\r\n")
    if any(byte in line for line in lines for byte in (b"\n", b"\r", b"\0")):
        raise Refused("bad_line_end", "bare CR, bare LF or NUL in the request head", 400)
    if len(lines) - 1 > MAX_HEADERS:
        raise Refused("too_many_headers", f"more than {MAX_HEADERS} headers", 431)
    parts = lines[0].split(b" ")
    if len(parts) != 3 or not _TOKEN.fullmatch(parts[0]) or not _TARGET.fullmatch(parts[1]):
        raise Refused("bad_request_line", "the request line is not METHOD TARGET VERSION", 400)
    if parts[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise Refused("bad_version", "only HTTP/1.0 and HTTP/1.1 are spoken here", 505)
    headers = tuple(_header(line) for line in lines[1:])
    method = parts[0].decode("ascii")
    if method == "CONNECT":
        target = parse_authority(parts[1].decode("ascii"))
        _same_host(headers, target, target.port)
        if _length(headers) != 0:
            raise Refused("ambiguous_length", "a CONNECT request has no body", 400)
        return Request(method, target, b"", headers, 0, parts[2])
    target, path = _absolute(parts[1])
    _same_host(headers, target, 80)
    if parts[2] == b"HTTP/1.0" and any(name.lower() == b"transfer-encoding" for name, _ in headers):
        # chunks came with 1.1: a server that goes by the version takes the body for what follows a bodiless request
        raise Refused("ambiguous_length", "Transfer-Encoding in an HTTP/1.0 request", 400)
    if any(name.lower() == b"upgrade" for name, _ in headers):
        raise Refused("upgrade", "protocol upgrades are not passed on")
    if _FRAMING & set(_listed(headers, b"connection")):
        raise Refused("ambiguous_length", "Connection lists a header that frames the request", 400)
    return Request(method, target, path, headers, _length(headers), parts[2])


def _header(line: bytes) -> tuple[bytes, bytes]:
    if line[:1] in (b" ", b"\t"):
        raise Refused("folded_header", "folded header lines are not accepted", 400)
    name, colon, value = line.partition(b":")
    if not colon or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
        raise Refused("bad_header", "a header line is not NAME: VALUE", 400)
    return name, value.strip(b" \t")


def _listed(headers: Headers, wanted: bytes) -> list[bytes]:
    """The lower-case members of a comma-separated header."""
    values = [value for name, value in headers if name.lower() == wanted]
    return [item.strip(b" \t").lower() for value in values for item in value.split(b",")]


def _absolute(target: bytes) -> tuple[Target, bytes]:
    scheme, separator, rest = target.partition(b"://")
    if not separator:
        raise Refused("origin_form", "a proxy needs the whole URL, not a path", 400)
    if scheme.lower() != b"http":
        raise Refused("scheme", f"{scheme[:16].decode('ascii')} URLs are not fetched here; use CONNECT for https", 400)
    authority, slash, path = rest.partition(b"/")
    if b"?" in authority or b"#" in target:
        raise Refused("bad_request_line", "the URL has no path, or it has a fragment", 400)
    return parse_authority(authority.decode("ascii"), default_port=80), slash + path or b"/"


def _same_host(headers: Headers, target: Target, default_port: int) -> None:
    hosts = [value for name, value in headers if name.lower() == b"host"]
    if len(hosts) > 1:
        raise Refused("host_mismatch", "more than one Host header", 400)
    if hosts and parse_authority(hosts[0].decode("latin-1"), default_port=default_port) != target:
        raise Refused("host_mismatch", "the Host header names another host than the target")


def _length(headers: Headers) -> int | None:
    lengths = [value for name, value in headers if name.lower() == b"content-length"]
    codings = [value.lower() for name, value in headers if name.lower() == b"transfer-encoding"]
    if lengths and codings:
        raise Refused("ambiguous_length", "Content-Length and Transfer-Encoding together", 400)
    if len(lengths) > 1:
        raise Refused("ambiguous_length", "Content-Length twice", 400)
    if codings:
        if codings != [b"chunked"]:
            raise Refused("ambiguous_length", "the only transfer coding accepted is chunked", 400)
        return None
    if not lengths:
        return 0
    if not re.fullmatch(rb"[0-9]{1,15}", lengths[0]):
        raise Refused("ambiguous_length", "Content-Length is not a plain number", 400)
    return int(lengths[0])
