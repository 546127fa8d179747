"""Ordinary traffic through the proxy: real clients and servers, large bodies, interim answers, many at once."""

from __future__ import annotations

import hashlib
import http.client
import http.server
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest

from labaudit.network.forward import Forwarder
from tests.engine_contract import until
from tests.network_lab import (
    Origin,
    client_hello,
    proxy_lab,
    read_all,
    read_head,
    status_of,
    tls_client,
    tls_server,
)

NAME = "allowed.test"


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with the digest of what it got, or with as many bytes as the path says."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        size = int(self.path.strip("/") or 0)
        self.send_response(200)
        if "chunked" in self.headers.get("X-Wish", ""):
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for start in range(0, size, 10_000):
                piece = b"x" * min(10_000, size - start)
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.send_header("Content-Length", str(size))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(b"x" * size)

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        told = hashlib.sha256(body).hexdigest().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        pass


@pytest.fixture(scope="module", params=["plain", "tls"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[int, bool]]:
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.daemon_threads = True
    if request.param == "tls":
        made.socket = tls_server(NAME).wrap_socket(made.socket, server_side=True)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made.server_address[1], request.param == "tls"
    made.shutdown()
    made.server_close()


@pytest.fixture(scope="module")
def way(server: tuple[int, bool]) -> Iterator[int]:
    """A loopback port that leads to the proxy, as in a sandbox."""
    with proxy_lab(f"{NAME}:{server[0]}") as lab:
        forwarder = Forwarder.listen(0, lab.path)
        yield forwarder.port
        forwarder.close()


def client(way: int, server: tuple[int, bool]) -> tuple[http.client.HTTPConnection, str]:
    """A standard client behind the proxy, and what its paths begin with."""
    port, tls = server
    if tls:
        made: http.client.HTTPConnection = http.client.HTTPSConnection(
            "127.0.0.1", way, timeout=20, context=tls_client(NAME)
        )
        made.set_tunnel(NAME, port)
        return made, ""
    return http.client.HTTPConnection("127.0.0.1", way, timeout=20), f"http://{NAME}:{port}"


@pytest.mark.parametrize("size", [0, 1, 65_536, 5_000_000])
@pytest.mark.parametrize("wish", ["", "chunked"])
def test_answers_of_any_size_arrive_whole(way: int, server: tuple[int, bool], size: int, wish: str) -> None:
    line, start = client(way, server)
    with closing(line):
        line.request("GET", f"{start}/{size}", headers={"X-Wish": wish})
        answer = line.getresponse()
        assert answer.status == 200
        assert len(answer.read()) == size


def test_a_head_request_has_no_body(way: int, server: tuple[int, bool]) -> None:
    line, start = client(way, server)
    with closing(line):
        line.request("HEAD", f"{start}/1000")
        answer = line.getresponse()
        assert (answer.status, answer.headers["Content-Length"], answer.read()) == (200, "1000", b"")


@pytest.mark.parametrize("chunked", [False, True])
def test_bodies_arrive_whole(way: int, server: tuple[int, bool], chunked: bool) -> None:
    body = os.urandom(3_000_000)
    line, start = client(way, server)
    with closing(line):
        if chunked:
            pieces = (body[at : at + 70_001] for at in range(0, len(body), 70_001))
            chunks = {"Transfer-Encoding": "chunked"}
            line.request("POST", f"{start}/", body=pieces, headers=chunks, encode_chunked=True)
        else:
            line.request("POST", f"{start}/", body=body)
        assert line.getresponse().read().decode() == hashlib.sha256(body).hexdigest()


def test_fifty_at_once_are_all_served(way: int, server: tuple[int, bool]) -> None:
    def one(number: int) -> bool:
        body = os.urandom(20_000 + number)
        line, start = client(way, server)
        with closing(line):
            line.request("POST", f"{start}/", body=body)
            return line.getresponse().read().decode() == hashlib.sha256(body).hexdigest()

    with ThreadPoolExecutor(50) as pool:
        assert all(pool.map(one, range(50)))


def test_an_interim_answer_is_passed_on() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    with Origin(answer=interim) as origin, proxy_lab(f"{NAME}:{origin.port}") as lab, lab.connect() as line:
        head = f"POST http://{NAME}:{origin.port}/ HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
        line.sendall(head.encode())
        assert status_of(read_head(line)) == 100
        line.sendall(b"abc")
        assert read_all(line).endswith(b"ok")


def test_the_next_address_is_dialled_when_the_first_does_not_answer() -> None:
    with Origin() as origin, proxy_lab(f"{NAME}:{origin.port}", names={NAME: ["127.0.0.2", "127.0.0.1"]}) as lab:
        assert status_of(lab.talk(f"GET http://{NAME}:{origin.port}/ HTTP/1.1\r\n\r\n".encode())) == 200
        assert lab.events()[0]["address"] == "127.0.0.1"


def test_ipv6_is_dialled_where_the_policy_names_it() -> None:
    if not socket.has_ipv6:
        pytest.skip("this Python has no IPv6")
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    port = listener.getsockname()[1]

    def serve() -> None:
        peer, _ = listener.accept()
        with peer:
            peer.recv(1000)
            peer.sendall(b"HTTP/1.0 200 OK\r\n\r\nsix")

    threading.Thread(target=serve, daemon=True).start()
    with closing(listener), proxy_lab(f"{NAME}:{port}", names={NAME: ["::1"]}, networks=("::1/128",)) as lab:
        assert lab.talk(f"GET http://{NAME}:{port}/ HTTP/1.1\r\n\r\n".encode()).endswith(b"six")
        assert lab.events()[0]["address"] == "::1"


def test_a_tunnel_is_half_closed_from_either_side() -> None:
    with Origin(waits_for=b"END", answer=b"late answer") as origin, proxy_lab(f"{NAME}:{origin.port}") as lab:
        hello = client_hello(NAME)
        with lab.connect() as line:
            line.sendall(f"CONNECT {NAME}:{origin.port} HTTP/1.1\r\n\r\n".encode())
            read_head(line)
            line.sendall(hello + b"rest END")
            line.shutdown(socket.SHUT_WR)
            assert read_all(line) == b"late answer"
        [event] = lab.events()
    assert origin.received[0] == hello + b"rest END"
    assert (event["bytes_up"], event["bytes_down"]) == (len(hello) + 8, 11)


def test_a_client_that_gives_up_in_the_middle_is_still_in_the_log() -> None:
    with Origin(waits_for=b"never", hold=5) as origin, proxy_lab(f"{NAME}:{origin.port}") as lab:
        with lab.connect() as line:
            line.sendall(f"CONNECT {NAME}:{origin.port} HTTP/1.1\r\n\r\n".encode() + client_hello(NAME))
            read_head(line)
        [event] = lab.events()
    assert event["decision"] == "allow"


def test_tls_inside_a_tunnel_is_the_clients_own_to_verify() -> None:
    """The proxy holds no key: a wrong certificate is found by the client, not hidden from it."""
    other = tls_server("other.test")
    with Origin(tls=other) as origin, proxy_lab(f"{NAME}:{origin.port}") as lab, lab.connect() as line:
        line.sendall(f"CONNECT {NAME}:{origin.port} HTTP/1.1\r\n\r\n".encode())
        read_head(line)
        with pytest.raises(ssl.SSLCertVerificationError):
            tls_client("other.test").wrap_socket(line, server_hostname=NAME)


def test_draining_ends_what_is_being_looked_up() -> None:
    started = threading.Event()

    def slow(host: str, port: int) -> list[str]:
        started.set()
        threading.Event().wait(8)
        return ["127.0.0.1"]

    with proxy_lab(f"{NAME}:1", names=slow) as lab, lab.connect() as line:
        line.sendall(f"GET http://{NAME}:1/ HTTP/1.1\r\n\r\n".encode())
        assert started.wait(30)
        lab.server.drain()  # TimeoutError where it does not end
        [event] = lab.lines()
    assert event["decision"] == "block"


def test_draining_ends_what_is_being_dialled_at_whatever_address_it_stands() -> None:
    with ExitStack() as stack:
        port = 0
        for address in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
            # nobody accepts and the queue is full: a connection to it is neither made nor refused
            full = stack.enter_context(socket.socket())
            full.bind((address, port))
            full.listen(0)
            port = full.getsockname()[1]
            for _ in range(3):
                filler = stack.enter_context(socket.socket())
                filler.setblocking(False)
                filler.connect_ex((address, port))
        names = {NAME: ["127.0.0.1", "127.0.0.2", "127.0.0.3"]}
        with proxy_lab(f"{NAME}:{port}", names=names) as lab, lab.connect() as line:
            line.sendall(f"GET http://{NAME}:{port}/ HTTP/1.1\r\n\r\n".encode())
            assert until(lambda: lab.server._open and all(made._upstream is not None for made in lab.server._open))
            lab.server.drain()
            [event] = lab.lines()
    assert (event["decision"], event["host"], event["reason"]) == ("block", NAME, "the trial ended")


def test_draining_ends_those_who_wait_for_a_place_in_the_name_service() -> None:
    release, asked = threading.Event(), []

    def stuck(host: str, port: int) -> list[str]:
        asked.append(host)
        release.wait(30)
        return []

    with ExitStack() as stack:
        lab = stack.enter_context(proxy_lab(f"{NAME}:1", names=stuck, resolve_seconds=30))
        for _ in range(40):
            line = stack.enter_context(lab.connect())
            line.sendall(f"GET http://{NAME}:1/ HTTP/1.1\r\n\r\n".encode())
        assert until(lambda: len(asked) == 32 and len(lab.server._open) == 40)
        lab.server.drain()
        release.set()
        assert sum(event.get("count", 1) for event in lab.lines()) == 40
