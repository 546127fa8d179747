"""A listener that exists to be reached: it notes every token that arrives, and answers with the same token.

Used in the runner's own process, or as a script in a container: `canary.py ADDRESS PORT LOG` (port 0: any), which
prints `ready PORT` and appends a JSON line per arrival. Standard library only.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

TOKEN = re.compile(rb"[0-9a-f]{32}")
_PATIENCE = 3.0
_IP_PKTINFO = 8

Note = Callable[[str, str, str], None]
"""Called with the token, the transport and the peer."""


class Canary:
    """TCP and UDP on one port, and (where a name is given) an abstract unix socket."""

    def __init__(self, address: str, port: int, note: Note, abstract: str = "") -> None:
        self._note, self._closed = note, False
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._sockets: list[socket.socket] = []
        try:
            tcp = self._bind(socket.socket(family, socket.SOCK_STREAM), (address, port))
            self.port: int = tcp.getsockname()[1]
            udp = self._bind(socket.socket(family, socket.SOCK_DGRAM), (address, self.port))
            if family == socket.AF_INET:
                udp.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
            self._start(self._streams, tcp, "tcp")
            self._start(self._datagrams, udp)
            if abstract:
                unix = self._bind(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), "\0" + abstract)
                self._start(self._streams, unix, "abstract")
        except BaseException:
            self.close()
            raise

    def _bind(self, made: socket.socket, where: Any) -> socket.socket:
        self._sockets.append(made)
        made.bind(where)
        if made.type == socket.SOCK_STREAM:
            made.listen(64)
        return made

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=target, args=arguments, daemon=True).start()

    def close(self) -> None:
        """Stops listening."""
        self._closed = True
        for made in self._sockets:
            with suppress(OSError):
                made.shutdown(socket.SHUT_RDWR)
            made.close()

    def _streams(self, listener: socket.socket, transport: str) -> None:
        while not self._closed:
            try:
                client, peer = listener.accept()
            except OSError:
                return
            self._start(self._serve, client, transport, _name(peer))

    def _serve(self, client: socket.socket, transport: str, peer: str) -> None:
        with client, suppress(OSError):
            client.settimeout(_PATIENCE)
            data = b""
            while len(data) < 4096 and not (found := TOKEN.search(data)):
                more = client.recv(4096)
                if not more:
                    return
                data += more
            if found:
                self._note(found.group().decode(), transport, peer)
                body = b"canary " + found.group() + b"\n"
                client.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    def _datagrams(self, listener: socket.socket) -> None:
        while not self._closed:
            try:
                data, where, _, peer = listener.recvmsg(4096, 256)
            except OSError:
                return
            if found := TOKEN.search(data):
                self._note(found.group().decode(), "udp", _name(peer))
                with suppress(OSError):
                    # from the address that was asked: a connected client takes no other's answer
                    listener.sendmsg([b"canary " + found.group() + b"\n"], where, 0, peer)


def _name(peer: Any) -> str:
    return str(peer[0]) if isinstance(peer, tuple) else ""


def main(arguments: list[str]) -> None:
    """Serves until killed."""
    address, port, path = arguments[:3]
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def note(token: str, transport: str, peer: str) -> None:
        os.write(log, json.dumps({"token": token, "transport": transport, "peer": peer}).encode() + b"\n")

    canary = Canary(address, int(port), note)
    os.write(1, b"ready %d\n" % canary.port)
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1:])
