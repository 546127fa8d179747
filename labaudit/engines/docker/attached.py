"""The attached streams of a container: frames from the engine's socket into two captures, and stdin back.

Each frame is one byte of stream number, three of padding, four of length. The log driver is `none`: what is not read
here is not kept anywhere.
"""

from __future__ import annotations

import io
import os
import socket
from contextlib import suppress
from typing import Any

import docker

from labaudit.engines.running.capture import StreamCapture

_CHUNK = 1 << 16


def attach(client: docker.APIClient, container: str, *, stdin: bool) -> socket.socket:
    """A connected socket that carries the container's streams; to be called before the start."""
    params = {"stdout": 1, "stderr": 1, "stream": 1, **({"stdin": 1} if stdin else {})}
    raw: Any = client.attach_socket(container, params=params)
    connection: socket.socket = getattr(raw, "_sock", raw)
    # a descriptor of our own: the library closes its own when the response is collected
    return socket.socket(fileno=os.dup(connection.fileno()))


def demultiplex(connection: socket.socket, out: StreamCapture, err: StreamCapture) -> None:
    """Feeds frames into the captures until the engine closes the stream."""
    while True:
        head = _exactly(connection, 8)
        if len(head) < 8:
            return
        left = int.from_bytes(head[4:], "big")
        capture = err if head[0] == 2 else out
        while left:
            try:
                data = connection.recv(min(left, _CHUNK))
            except OSError:
                return
            if not data:
                return
            capture.feed(data)
            left -= len(data)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        try:
            chunk = connection.recv(size - len(data))
        except OSError:
            return data
        if not chunk:
            return data
        data += chunk
    return data


class StdinWriter(io.RawIOBase):
    """The writing half of an attached socket; closing it shows the harness the end of its input."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._connection.sendall(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_WR)
        super().close()
