"""The egress proxy beside a plain relay in the same run: bytes through a tunnel, requests, and starting a proxy.

The relay is the least that any way out costs: one process that copies between two sockets and decides nothing.
"""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from labaudit.network.local_proxy import NetworkProxy
from labaudit.network.policy import EgressPolicy

MEGABYTES = 256
REQUESTS = 400
ROUNDS = 5
LOOPBACK = ["127.0.0.0/8", "::1/128"]

# Sends MEGABYTES to whoever says a TLS hello, and a short answer to whoever says GET.
ORIGIN = f"""
import socket, threading
listener = socket.create_server(("127.0.0.1", 0), backlog=128)
print(listener.getsockname()[1], flush=True)
block = bytes(1 << 16)
def serve(client):
    with client:
        if client.recv(65536).startswith(b"GET"):
            client.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
            return
        for _ in range({MEGABYTES} * 16):
            client.sendall(block)
while True:
    client, _ = listener.accept()
    threading.Thread(target=serve, args=(client,), daemon=True).start()
"""
RELAY = """
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", 0), backlog=128)
print(listener.getsockname()[1], flush=True)
def copy(source, sink):
    while data := source.recv(1 << 16):
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)
def serve(client):
    upstream = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    back = threading.Thread(target=copy, args=(upstream, client), daemon=True)
    back.start()
    copy(client, upstream)
    back.join()
    client.close(); upstream.close()
while True:
    client, _ = listener.accept()
    threading.Thread(target=serve, args=(client,), daemon=True).start()
"""

FORWARD = """
import sys
from labaudit.network.forward import Forwarder
forwarder = Forwarder.listen(0, sys.argv[1])
print(forwarder.port, flush=True)
forwarder.wait()
"""

Connect = Callable[[], socket.socket]


@contextmanager
def serving(script: str, *arguments: str) -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-S", "-c", script, *arguments], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def hello(name: str) -> bytes:
    context = ssl.create_default_context()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


def read_to_end(line: socket.socket) -> int:
    buffer, total = bytearray(1 << 16), 0
    while size := line.recv_into(buffer):
        total += size
    return total


def download(connect: Connect, tunnel: bytes, first: bytes) -> float:
    """Seconds for the whole amount, tunnel included."""
    began = time.perf_counter()
    with connect() as line:
        if tunnel:
            line.sendall(tunnel)
            answer = b""
            while not answer.endswith(b"\r\n\r\n"):
                answer += line.recv(1)
            assert b" 200 " in answer, answer
        line.sendall(first)
        assert read_to_end(line) == MEGABYTES << 20
    return time.perf_counter() - began


def requests(connect: Connect, words: bytes) -> float:
    """Seconds per request, one connection each."""
    began = time.perf_counter()
    for _ in range(REQUESTS):
        with connect() as line:
            line.sendall(words)
            data = b""
            while more := line.recv(4096):
                data += more
            assert data.endswith(b"ok"), data
    return (time.perf_counter() - began) / REQUESTS


def tcp(port: int) -> Connect:
    return lambda: socket.create_connection(("127.0.0.1", port))


def unix(path: Path) -> Connect:
    def connect() -> socket.socket:
        line = socket.socket(socket.AF_UNIX)
        line.connect(str(path))
        return line

    return connect


def interleaved(works: dict[str, Callable[[], float]]) -> dict[str, float]:
    """The best of several rounds, taken in turn: neighbours on the machine disturb all alike."""
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, work in works.items():
            best[name] = min(best.get(name, 1e9), work())
    return best


def start_times(folder: Path) -> dict[str, float]:
    def bare() -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-S", "-B", "-c", "import socket, threading, json"], check=True)
        return time.perf_counter() - began

    def start() -> float:
        began = time.perf_counter()
        proxy = NetworkProxy.start(EgressPolicy.parse(["localhost:1"], LOOPBACK), folder)
        span = time.perf_counter() - began
        proxy.close()
        return span

    return interleaved({"an interpreter with three imports": bare, "a proxy, until it serves": start})


def drained(proxy: NetworkProxy) -> float:
    began = time.perf_counter()
    assert proxy.drain()
    return time.perf_counter() - began


def table(title: str, unit: str, figures: dict[str, float], floor: str, show: Callable[[float], str]) -> None:
    print(f"\n### {title}\n\n| way | {unit} | time, as a ratio to the floor |\n|---|---|---|")
    for name, span in figures.items():
        ratio = "1 (floor)" if name == floor else f"{span / figures[floor]:.2f}"
        print(f"| {name} | {show(span)} | {ratio} |")


def main() -> None:
    with tempfile.TemporaryDirectory() as place, serving(ORIGIN) as origin, serving(RELAY, str(origin)) as relay:
        folder = Path(place)
        proxy = NetworkProxy.start(EgressPolicy.parse([f"localhost:{origin}"], LOOPBACK), folder)
        try:
            measure(proxy, origin, relay)
        finally:
            proxy.close()
        spans = start_times(folder)
        table("Start", "ms", spans, "an interpreter with three imports", lambda s: f"{s * 1000:.0f}")


def measure(proxy: NetworkProxy, origin: int, relay: int) -> None:
    first = hello("localhost")
    with serving(FORWARD, str(proxy.socket)) as held:
        tunnel = f"CONNECT localhost:{origin} HTTP/1.1\r\n\r\n".encode()
        spans = interleaved(
            {
                "plain relay": lambda: download(tcp(relay), b"", first),
                "no relay at all": lambda: download(tcp(origin), b"", first),
                "proxy, by its unix socket": lambda: download(unix(proxy.socket), tunnel, first),
                "forwarder and proxy, as a trial sees it": lambda: download(tcp(held), tunnel, first),
            }
        )
        table(f"{MEGABYTES} MB through one tunnel", "MB/s", spans, "plain relay", lambda s: f"{MEGABYTES / s:.0f}")
        plain = b"GET / HTTP/1.1\r\n\r\n"
        asked = f"GET http://localhost:{origin}/ HTTP/1.1\r\n\r\n".encode()
        spans = interleaved(
            {
                "plain relay": lambda: requests(tcp(relay), plain),
                "no relay at all": lambda: requests(tcp(origin), plain),
                "proxy, by its unix socket": lambda: requests(unix(proxy.socket), asked),
                "forwarder and proxy, as a trial sees it": lambda: requests(tcp(held), asked),
            }
        )
        table("Small requests, one connection each", "ms", spans, "plain relay", lambda s: f"{s * 1000:.2f}")
        print(f"\nEnd of a trial on a pooled proxy (drain): {min(drained(proxy) for _ in range(20)) * 1000:.1f} ms")


if __name__ == "__main__":
    main()
