"""What the proxy lets out is one request, to the allowed host, by the reading of other HTTP implementations too.

Requests are made by mutating good ones. Whatever arrives at the origin is read by h11 and by the standard library's
server; both must see exactly one request with the Host that the policy allowed.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import h11
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.network_lab import Origin, ProxyLab, proxy_lab

NAME = "allowed.test"

lines = st.sampled_from([
    b"Host: allowed.test:%d", b"Host: evil.test", b"Content-Length: 5", b"Content-Length: 0", b"Content-Length: 05",
    b"content-length:5", b"Content-Length: 5 ", b"Content-Length:\t5", b"Content-Length: 5, 5", b"Content-Length : 5",
    b"Transfer-Encoding: chunked", b"Transfer-Encoding: Chunked", b"Transfer-Encoding: chunked, identity",
    b"Transfer-Encoding : chunked", b"Transfer-Encoding:\x0bchunked", b" folded", b"X: y", b"X: a\rb", b"X: a\nb",
    b"Connection: close", b"Connection: Content-Length", b"Connection: Host, Transfer-Encoding",
    b"Expect: 100-continue", b"Trailer: X",
    b"TE: trailers", b"Upgrade: h2c", b"Proxy-Connection: keep-alive", b"", b":", b"X: \x80\xff",
])  # fmt: skip
bodies = st.sampled_from([
    b"", b"abcde", b"abcdeGET /evil HTTP/1.1\r\n\r\n", b"5\r\nabcde\r\n0\r\n\r\n",
    b"0\r\n\r\nGET /evil HTTP/1.1\r\n\r\n",
    b"5;x\r\nabcde\r\n0\r\n\r\n", b"5\r\nabcde\r\n0\r\nX: y\r\n\r\n", b"5\nabcde\n0\n\n", b"-1\r\n", b"5\r\nabcdeX",
])  # fmt: skip
starts = st.sampled_from([
    b"GET http://allowed.test:%d/ok HTTP/1.1", b"POST http://allowed.test:%d/ok HTTP/1.1",
    b"POST http://allowed.test:%d/ok HTTP/1.0", b"GET http://allowed.test:%d/ok?x=http://evil.test/ HTTP/1.1",
    b"GET http://allowed.test:%d HTTP/1.1", b"GET /evil HTTP/1.1", b"GET http://evil.test/ HTTP/1.1",
    b"GET http://allowed.test:%d/ok\tHTTP/1.1", b"GET http://allowed.test:%d/ok HTTP/1.1 HTTP/1.1",
    b"GET\thttp://allowed.test:%d/ HTTP/1.1",
])  # fmt: skip
clean = st.just([b"\r\n"] * 6)
mixed = st.lists(st.sampled_from([b"\r\n", b"\n", b"\r"]), min_size=6, max_size=6)


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    with Origin() as made:
        yield made
        time.sleep(0.2)
        # once more at the end, for bytes that took their time
        assert not any(b"evil HTTP" in data for data in made.received)


@pytest.fixture(scope="module")
def lab(origin: Origin) -> Iterator[ProxyLab]:
    with proxy_lab(f"{NAME}:{origin.port}", linger_seconds=0.05, head_seconds=0.3, idle_seconds=0.5) as made:
        yield made


def as_h11_reads(data: bytes) -> list[tuple[bytes, bytes]]:
    """(target, host) of each request that h11 finds; what it refuses counts as none."""
    reader, found = h11.Connection(h11.SERVER), []
    reader.receive_data(data)
    reader.receive_data(b"")
    while True:
        try:
            event = reader.next_event()
        except h11.RemoteProtocolError:
            return found
        if isinstance(event, h11.Request):
            hosts = [value for name, value in event.headers if name == b"host"]
            found.append((event.target, b",".join(hosts)))
        elif isinstance(event, h11.EndOfMessage):
            assert reader.trailing_data[0] == b"", "bytes after the request"
        else:
            if event in (h11.NEED_DATA, h11.PAUSED) or isinstance(event, h11.ConnectionClosed):
                return found


class Library(BaseHTTPRequestHandler):
    """The standard library's reading of a head, without a socket."""

    def __init__(self, data: bytes) -> None:
        self.rfile = io.BytesIO(data)
        self.wfile = io.BytesIO()
        self.client_address = ("", 0)
        self.raw_requestline = self.rfile.readline(65537)
        self.understood = self.parse_request()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(starts, st.lists(lines, max_size=4), st.one_of(clean, clean, clean, mixed), bodies)
def test_whatever_arrives_is_one_request_to_the_allowed_host(
    origin: Origin, lab: ProxyLab, start: bytes, headers: list[bytes], breaks: list[bytes], body: bytes
) -> None:
    before = len(origin.received)
    head = [start, *headers, b""]
    words = b"".join(line + end for line, end in zip(head, breaks, strict=False)) + body
    words = words.replace(b"%d", b"%d" % origin.port)
    lab.talk(words, end=True)
    lab.server.drain()
    arrived = [data for data in origin.received[before:] if data]
    assert len(arrived) <= 1
    for data in arrived:
        assert b"evil HTTP" not in data
        requests = as_h11_reads(data)
        assert len(requests) <= 1
        host = b"%s:%d" % (NAME.encode(), origin.port)
        assert [found[1] for found in requests] in ([], [host])
        library = Library(data)
        assert library.understood
        assert library.path.startswith("/")
        assert library.headers.get_all("Host") == [host.decode()]
        lengths = library.headers.get_all("Content-Length") or []
        codings = library.headers.get_all("Transfer-Encoding") or []
        assert len(lengths) + len(codings) <= 1
        after = data.partition(b"\r\n\r\n")[2]
        if lengths:
            assert len(after) <= int(lengths[0])
        elif not codings:
            assert after == b""


def test_the_second_readers_do_read() -> None:
    one = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
    assert as_h11_reads(one) == [(b"/a", b"x")]
    assert Library(one).path == "/a"
    with pytest.raises(AssertionError, match="bytes after the request"):
        as_h11_reads(one + one)


def test_a_good_request_arrives(origin: Origin, lab: ProxyLab) -> None:
    before = len(origin.received)
    lab.talk(b"POST http://allowed.test:%d/ok HTTP/1.1\r\nContent-Length: 5\r\n\r\nabcde" % origin.port)
    lab.server.drain()
    assert as_h11_reads(origin.received[before]) == [(b"/ok", b"allowed.test:%d" % origin.port)]
