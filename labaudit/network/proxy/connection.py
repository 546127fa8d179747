"""One client's connection: a request is read, decided, and carried out; what happened comes back as decisions.

The order is the same for all: parse, check the target, resolve, check every address, dial a checked one. In a tunnel
the first bytes must then be a TLS hello that names the same host.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from contextlib import suppress

from .decisions import Decision
from .framing import request_body
from .hello import MAX_HELLO, NeedMore, check_hello, read_hello
from .limits import ProxyLimits
from .request import Request, head_is_complete, parse_head
from .response import MAX_RESPONSE_HEAD, Response, parse_response
from .rules import Refused, Rules, parse_address
from .wires import (
    CHUNK,
    Answer,
    Gone,
    Resolve,
    Traffic,
    copy,
    dial,
    hang_up,
    linger,
    read_until,
    resolve_within,
    set_patience,
)

_PHRASES = {400: "Bad Request", 403: "Forbidden", 408: "Request Timeout", 431: "Request Header Fields Too Large",
            502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
            505: "HTTP Version Not Supported"}  # fmt: skip
_PIPELINED = Refused("pipelined_request", "bytes after the end of the request were dropped")
_TLS_ACCESS_DENIED = b"\x15\x03\x03\x00\x02\x02\x31"
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Connection:
    """From accept to close. `run` in its own thread; `close` from any."""

    def __init__(self, client: socket.socket, rules: Rules, resolve: Resolve, limits: ProxyLimits) -> None:
        self._client, self._rules, self._resolve, self._limits = client, rules, resolve, limits
        self._upstream: socket.socket | None = None
        self._traffic = Traffic()
        self._found: Answer = queue.SimpleQueue()
        self._closed = self._answered = False
        self._more: list[Decision] = []

    def close(self) -> None:
        """Drops both sides, wherever the connection stands; `run` then returns soon."""
        self._closed = True
        self._found.put([])
        hang_up(self._client, self._upstream)

    def run(self) -> list[Decision]:
        """Serves the client to its end; the first decision is about its request."""
        began = time.monotonic()
        fate = Decision("block", "no_request")
        try:
            self._serve(fate)
        except Refused as refusal:
            self._refuse(fate, refusal)
        except TimeoutError:
            self._refuse(fate, Refused("timeout", "the other side took too long", 408))
        except (Gone, OSError):
            if fate.decision == "block":
                ended = "the trial ended" if self._closed else "the connection ended before a request was complete"
                fate.reason = ended
        except Exception as error:  # noqa: BLE001, a fault of ours ends the connection and still has its line
            fate.rule = fate.rule if fate.decision == "allow" else "internal_error"
            fate.reason = f"a fault in the proxy: {type(error).__name__}"
        finally:
            hang_up(self._upstream)
            with suppress(OSError):
                self._client.close()
            if self._upstream is not None:
                self._upstream.close()
        fate.bytes_up, fate.bytes_down = self._traffic.up, self._traffic.down
        fate.duration_ms = int((time.monotonic() - began) * 1000)
        return [fate, *self._more]

    def _serve(self, fate: Decision) -> None:
        data = read_until(self._client, self._limits.head_seconds, b"", head_is_complete)
        head, _, rest = data.partition(b"\r\n\r\n")
        _guess(head, fate)
        request = parse_head(head)
        target = request.target
        fate.host, fate.port, fate.method = target.host, target.port, request.method
        fate.transport = "connect" if request.is_connect else "http"
        rule = self._rules.check(target)
        found = resolve_within(self._resolve, target.host, target.port, self._limits.resolve_seconds, self._found)
        addresses = self._rules.check_addresses(target.host, found)[: self._limits.addresses]
        upstream, fate.address = dial(addresses, target.port, self._limits.connect_seconds, self._show)
        if self._closed:
            raise Gone
        fate.reason = self._rules.remark(parse_address(fate.address))
        if request.is_connect:
            self._tunnel(upstream, target.host, rest, fate, rule)
        else:
            fate.decision, fate.rule = "allow", rule
            self._fetch(upstream, request, rest, fate)

    def _show(self, upstream: socket.socket) -> None:
        self._upstream = upstream
        if self._closed:
            raise Gone

    # --- tunnels ---

    def _tunnel(self, upstream: socket.socket, host: str, data: bytes, fate: Decision, rule: str) -> None:
        fate.rule = "no_hello"
        self._client.sendall(_ESTABLISHED)
        self._answered = True
        data = read_until(self._client, self._limits.hello_seconds, data, _hello_is_complete)
        hello = read_hello(data)
        fate.sni = hello.name
        check_hello(hello, host)
        fate.decision, fate.rule = "allow", rule
        for wire in (self._client, upstream):
            set_patience(wire, self._limits.idle_seconds)
        upstream.sendall(data)
        self._sent(len(data))
        up = threading.Thread(target=self._copy_up, args=(upstream,), daemon=True)
        up.start()
        with suppress(OSError):
            copy(upstream, self._client, self._received, self._quiet)
        hang_up(upstream)  # the server has ended: what the client still says has no reader
        up.join(self._limits.linger_seconds)
        hang_up(self._client)
        up.join()

    def _copy_up(self, upstream: socket.socket) -> None:
        try:
            copy(self._client, upstream, self._sent, self._quiet)
        except OSError:
            self.close()

    def _sent(self, size: int) -> None:
        self._traffic.up += size
        self._traffic.last = time.monotonic()

    def _received(self, size: int) -> None:
        self._traffic.down += size
        self._traffic.last = time.monotonic()

    def _quiet(self) -> bool:
        return time.monotonic() - self._traffic.last >= self._limits.idle_seconds

    # --- plain requests ---

    def _fetch(self, upstream: socket.socket, request: Request, rest: bytes, fate: Decision) -> None:
        for wire in (self._client, upstream):
            set_patience(wire, self._limits.idle_seconds)
        head = request.head()
        upstream.sendall(head)
        self._sent(len(head))
        body = threading.Thread(target=self._send_body, args=(upstream, request, rest), daemon=True)
        body.start()
        if request.length == 0:
            body.join()
        try:
            self._answer(upstream, request)
        except Refused as refusal:
            # it was let out; that the server then failed is no decision of ours
            fate.reason = refusal.reason
            self._tell(refusal)
        finally:
            hang_up(upstream)
            body.join(0.02)
            whole = not body.is_alive()
            dropped = linger(self._client, self._limits.linger_seconds)
            hang_up(self._client)
            body.join()
            if whole and dropped and not self._more:
                self._extra(request, _PIPELINED)

    def _send_body(self, upstream: socket.socket, request: Request, data: bytes) -> None:
        """Passes on one body and nothing after it: a second request in the same connection has no way out."""
        body = request_body(request.length)
        try:
            while True:
                mine = body.take(data)
                upstream.sendall(mine)
                self._sent(len(mine))
                if body.done:
                    break
                data = self._client.recv(CHUNK)
                if not data:
                    return
        except Refused as refusal:
            self._extra(request, refusal)
            hang_up(upstream)
        except OSError:
            hang_up(upstream)
        if body.rest:
            self._extra(request, _PIPELINED)

    def _extra(self, request: Request, refusal: Refused) -> None:
        host, port = request.target.host, request.target.port
        self._more.append(Decision("block", refusal.rule, host, port, "http", request.method, reason=refusal.reason))

    def _answer(self, upstream: socket.socket, request: Request) -> None:
        data = b""
        while True:
            response, data = self._read_response(upstream, request, data)
            self._pass_down(response.head)
            if not response.interim:
                break
        body = response.body
        while True:
            try:
                mine = body.take(data)
            except Refused:
                # a server's chunks that we cannot follow end with its connection
                mine, body = data, request_body(1 << 62)
            self._pass_down(mine)
            if body.done:
                return
            data = self._read(upstream)
            if not data:
                return

    def _read_response(self, upstream: socket.socket, request: Request, data: bytes) -> tuple[Response, bytes]:
        while b"\r\n\r\n" not in data:
            if len(data) > MAX_RESPONSE_HEAD:
                raise Refused("bad_response", "the head of the server's answer is too long", 502)
            more = self._read(upstream)
            if not more:
                raise Refused("bad_response", "the server ended without an answer", 502)
            data += more
        head, _, rest = data.partition(b"\r\n\r\n")
        return parse_response(head, request.method), rest

    def _read(self, upstream: socket.socket) -> bytes:
        while True:
            try:
                return upstream.recv(CHUNK)
            except BlockingIOError:
                if self._quiet():
                    raise Refused("timeout", "the server was silent for too long", 504) from None

    def _pass_down(self, data: bytes) -> None:
        if data:
            self._answered = True
            self._client.sendall(data)
            self._received(len(data))

    # --- refusals ---

    def _refuse(self, fate: Decision, refusal: Refused) -> None:
        fate.reason = refusal.reason
        if fate.decision == "block":
            fate.rule = refusal.rule
        if fate.transport == "connect" and self._answered:
            with suppress(OSError):
                self._client.sendall(_TLS_ACCESS_DENIED)
        else:
            self._tell(refusal)
        linger(self._client, self._limits.linger_seconds)

    def _tell(self, refusal: Refused) -> None:
        """An answer of our own, if the client has none yet."""
        if self._answered:
            return
        text = f"labaudit: {refusal.reason}\n".encode("ascii", "replace")
        head = (
            f"HTTP/1.1 {refusal.status} {_PHRASES[refusal.status]}\r\nContent-Type: text/plain\r\n"
            f"Content-Length: {len(text)}\r\nX-Labaudit-Rule: {refusal.rule}\r\nConnection: close\r\n\r\n"
        )
        with suppress(OSError):
            self._client.settimeout(self._limits.linger_seconds)
            self._client.sendall(head.encode("ascii") + text)


def _guess(head: bytes, fate: Decision) -> None:
    """What a request seems to ask for, for the log of one that is refused; replaced as soon as it is parsed.

    What stands before an @ may be a password, and is left out.
    """
    parts = head.split(b"\r\n", 1)[0].split(b" ")
    if len(parts) == 3:
        fate.method = parts[0].decode("ascii", "replace")
        fate.transport = "connect" if parts[0] == b"CONNECT" else "http"
        authority = parts[1] if parts[0] == b"CONNECT" else parts[1].partition(b"://")[2].partition(b"/")[0]
        fate.host = authority.rpartition(b"@")[2].decode("ascii", "replace") or None


def _hello_is_complete(data: bytes) -> bool:
    try:
        read_hello(data)
    except NeedMore:
        if len(data) > MAX_HELLO + CHUNK:
            raise Refused("bad_hello", "the ClientHello is too long") from None
        return False
    return True
