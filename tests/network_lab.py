"""A small internet for tests of the proxy: origins on loopback that note what arrives, and names that lead to them."""

from __future__ import annotations

import datetime
import json
import os
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from labaudit.network.proxy.decisions import DecisionLog
from labaudit.network.proxy.limits import ProxyLimits
from labaudit.network.proxy.rules import Rules, rules_from
from labaudit.network.proxy.server import ProxyServer

LOOPBACK = "127.0.0.0/8"


class Origin:
    """A server on loopback that notes every byte and answers each connection once, then closes."""

    def __init__(
        self, answer: bytes = b"", tls: ssl.SSLContext | None = None, waits_for: bytes = b"\r\n\r\n", hold: float = 0
    ) -> None:
        body = b"hello from the origin"
        self.answer = answer or b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        self.received: list[bytes] = []
        self._tls, self._waits_for, self._hold = tls, waits_for, hold
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(client,), daemon=True).start()

    def _one(self, client: socket.socket) -> None:
        index = len(self.received)
        self.received.append(b"")
        with suppress(OSError), client:
            client.settimeout(5)
            line: socket.socket = self._tls.wrap_socket(client, server_side=True) if self._tls else client
            while self._waits_for not in self.received[index] and (data := line.recv(65536)):
                self.received[index] += data
            line.sendall(self.answer)
            line.settimeout(self._hold or 0.05)
            with suppress(OSError):
                while data := line.recv(65536):
                    self.received[index] += data
            line.close()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def __enter__(self) -> Origin:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class ProxyLab:
    """The real proxy server in this process, on a unix socket, with a table in place of the name service."""

    def __init__(self, folder: Path, rules: Rules, names: Callable[[str, int], list[str]], limits: ProxyLimits) -> None:
        self.path = folder / "proxy.sock"
        self._log = folder / "network_events.jsonl"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.path))
        listener.listen(128)
        self._descriptor = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.server = ProxyServer(listener, rules, DecisionLog(self._descriptor), limits=limits, resolve=names)
        self.server.start()

    def connect(self, seconds: float = 5) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(self.path))  # without a timeout: a full backlog is then waited for, as by any client
        client.settimeout(seconds)
        return client

    def talk(self, words: bytes, *, end: bool = False) -> bytes:
        """Sends all at once and reads to the end."""
        with self.connect() as client:
            with suppress(OSError):
                client.sendall(words)
                if end:
                    client.shutdown(socket.SHUT_WR)
            return read_all(client)

    def events(self) -> list[dict[str, Any]]:
        """Every decision so far; ends what is open."""
        self.server.drain()
        return self.lines()

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log.read_bytes().splitlines()]

    def raw_log(self) -> bytes:
        self.server.drain()
        return self._log.read_bytes()

    def close(self) -> None:
        self.server.close()
        os.close(self._descriptor)


@contextmanager
def proxy_lab(
    *targets: str,
    names: dict[str, list[str]] | Callable[[str, int], list[str]] | None = None,
    networks: tuple[str, ...] = (LOOPBACK,),
    refused: tuple[str, ...] = (),
    **limits: Any,
) -> Iterator[ProxyLab]:
    """A proxy that allows `targets`; every name leads to 127.0.0.1 unless `names` says otherwise."""
    table = names

    def look_up(host: str, port: int) -> list[str]:
        if callable(table):
            return table(host, port)
        return ["127.0.0.1"] if table is None else table.get(host, [])

    rules = rules_from({"targets": list(targets), "networks": list(networks), "refused": list(refused)})
    with tempfile.TemporaryDirectory(prefix="net-") as folder:
        lab = ProxyLab(Path(folder), rules, look_up, ProxyLimits(**{"linger_seconds": 0.3, **limits}))
        try:
            yield lab
        finally:
            lab.close()


def read_all(line: socket.socket) -> bytes:
    data = b""
    with suppress(ConnectionError):
        while more := line.recv(65536):
            data += more
    return data


def read_head(line: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        more = line.recv(1)
        if not more:
            break
        data += more
    return data


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def rule_of(answer: bytes) -> str:
    return answer.split(b"X-Labaudit-Rule: ", 1)[1].split(b"\r\n", 1)[0].decode()


def client_hello(name: str | None, *, extra: bytes = b"") -> bytes:
    """A real TLS library's first message; `extra` is one more extension, put at the end."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with suppress(ssl.SSLWantReadError):
        session.do_handshake()
    record = outgoing.read()
    return record if not extra else add_extension(record, extra)


def add_extension(record: bytes, extension: bytes) -> bytes:
    """The same hello with another extension: three lengths grow."""
    body = record[9:]
    position = 34
    position += 1 + body[position]
    position += 2 + int.from_bytes(body[position : position + 2], "big")
    position += 1 + body[position]
    size = int.from_bytes(body[position : position + 2], "big") + len(extension)
    body = body[:position] + size.to_bytes(2, "big") + body[position + 2 :] + extension
    handshake = b"\x01" + len(body).to_bytes(3, "big") + body
    return record[:3] + len(handshake).to_bytes(2, "big") + handshake


@cache
def certificate(*names: str) -> tuple[Path, Path]:
    """(certificate, key) files of a self-signed certificate for the names."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(datetime.datetime(2099, 1, 1, tzinfo=datetime.UTC))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .sign(key, hashes.SHA256())
    )
    folder = Path(tempfile.mkdtemp(prefix="cert-"))
    cert, private = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return cert, private


def tls_server(*names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate(*names))
    return context


def tls_client(*names: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate(*names)[0]))
