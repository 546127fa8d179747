"""The first message of a TLS client: the name it asks for, and whether it hides another one. Pure.

Reads a ClientHello that may be spread over several records. A tunnel that does not begin with one is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from .rules import Refused, parse_host

MAX_HELLO = 64 << 10
_HANDSHAKE, _CLIENT_HELLO = 22, 1
_SERVER_NAME, _ECH, _OLD_ESNI = 0, 0xFE0D, 0xFFCE


class NeedMore(Exception):
    """The message is not complete yet."""


@dataclass(frozen=True)
class Hello:
    """What a ClientHello shows."""

    name: str | None
    encrypted: bool


def read_hello(data: bytes) -> Hello:
    """The ClientHello at the start of `data`. NeedMore if it is cut short, Refused if it is something else."""
    if data[:1] != bytes([_HANDSHAKE])[: len(data[:1])]:
        raise Refused("not_tls", "a tunnel must begin with a TLS handshake")
    if len(data) >= 3 and data[1] != 3:
        raise Refused("not_tls", "a tunnel must begin with a TLS handshake")
    message = _message(data)
    if message[0] != _CLIENT_HELLO:
        raise Refused("not_tls", "the first TLS message is not a ClientHello")
    try:
        return _parse(_Reader(message[4:]))
    except IndexError as error:
        raise Refused("bad_hello", "the ClientHello is malformed") from error


def check_hello(hello: Hello, host: str) -> None:
    """The name must be there, must be the tunnel's host, and must not hide another."""
    if hello.encrypted:
        raise Refused("encrypted_hello", "an encrypted ClientHello hides the name")
    if hello.name is None:
        raise Refused("no_sni", "the TLS client names no server")
    try:
        name = parse_host(hello.name)
    except Refused as error:
        raise Refused("sni_mismatch", f"the TLS server name is not usable: {error.reason}") from error
    if name != host:
        raise Refused("sni_mismatch", f"the TLS client asks for {name}, the tunnel is for {host}")


def _message(data: bytes) -> bytes:
    """The first handshake message, put together from its records."""
    message, position = b"", 0
    while True:
        if len(data) < position + 5:
            raise NeedMore
        if data[position] != _HANDSHAKE:
            raise Refused("not_tls", "another record in the middle of the ClientHello")
        size = int.from_bytes(data[position + 3 : position + 5], "big")
        if size == 0:
            raise Refused("bad_hello", "an empty record in the ClientHello")
        message += data[position + 5 : position + 5 + size]
        if len(message) >= 4:
            wanted = 4 + int.from_bytes(message[1:4], "big")
            if wanted > MAX_HELLO:
                raise Refused("bad_hello", "the ClientHello is too long")
            if len(message) >= wanted:
                return message[:wanted]
        if len(data) < position + 5 + size:
            raise NeedMore
        position += 5 + size


def _parse(reader: _Reader) -> Hello:
    reader.take(2 + 32)
    reader.vector(1)
    reader.vector(2)
    reader.vector(1)
    name, encrypted, seen = None, False, set()
    extensions = _Reader(reader.vector(2))
    if reader.left():
        raise Refused("bad_hello", "bytes after the extensions of the ClientHello")
    while extensions.left():
        kind = extensions.number(2)
        body = extensions.vector(2)
        if kind in seen:
            raise Refused("bad_hello", "an extension is there twice")
        seen.add(kind)
        if kind in (_ECH, _OLD_ESNI):
            encrypted = True
        elif kind == _SERVER_NAME:
            name = _server_name(_Reader(body))
    return Hello(name, encrypted)


def _server_name(reader: _Reader) -> str:
    names = _Reader(reader.vector(2))
    if names.number(1) != 0:
        raise Refused("bad_hello", "the server name is not a host name")
    name = names.vector(2)
    if names.left() or reader.left():
        raise Refused("bad_hello", "more than one server name")
    return name.decode("latin-1")


class _Reader:
    """Cuts length-prefixed pieces off a byte string; IndexError when it is too short."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def left(self) -> int:
        return len(self.data) - self.position

    def take(self, size: int) -> bytes:
        if self.left() < size:
            raise IndexError
        self.position += size
        return self.data[self.position - size : self.position]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> bytes:
        return self.take(self.number(size))
