"""Forwards TCP connections on a loopback port to a unix socket, byte for byte, and decides nothing.

Two uses: as a library (the listening sockets of a bubblewrap sandbox, which live in its network namespace), and as a
script inside the holder container: `forward.py PORT=SOCKET ...`. Standard library only.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

CHUNK = 1 << 16
MAX_CONNECTIONS = 256


class Forwarder:
    """Serves one listening socket in a thread until closed."""

    def __init__(self, listener: socket.socket, target: str | Path) -> None:
        self._listener, self._target = listener, str(target)
        self._pairs: set[_Pair] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @classmethod
    def listen(cls, port: int, target: str | Path) -> Forwarder:
        """Binds 127.0.0.1:`port` here and forwards it."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
        return cls(listener, target)

    @property
    def port(self) -> int:
        """The port that is forwarded."""
        number: int = self._listener.getsockname()[1]
        return number

    def wait(self) -> None:
        """Blocks for as long as it serves."""
        self._thread.join()

    def close(self) -> None:
        """Stops accepting and drops what is open."""
        self._closed = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            pairs = list(self._pairs)
        for pair in pairs:
            pair.close()

    def _serve(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                if self._closed or self._listener.fileno() < 0:
                    return
                time.sleep(0.05)  # out of descriptors, say: others must end first
                continue
            pair = _Pair(client, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            with self._lock:
                full = self._closed or len(self._pairs) >= MAX_CONNECTIONS
                if not full:
                    self._pairs.add(pair)
            if full:
                pair.close()
                continue
            try:
                threading.Thread(target=self._forward, args=(pair,), daemon=True).start()
            except RuntimeError:  # no thread to be had
                self._end(pair)

    def _forward(self, pair: _Pair) -> None:
        try:
            # whoever served the socket has gone: the connection is closed, nothing else is tried
            pair.right.connect(self._target)
            pair.run()
        except (OSError, RuntimeError):
            pass
        finally:
            self._end(pair)

    def _end(self, pair: _Pair) -> None:
        pair.close()
        with self._lock:
            self._pairs.discard(pair)


class _Pair:
    """Two connected sockets; what comes in on one goes out on the other, with half-close.

    A thread per direction: one alone could wait for room on the one side while the other waits to be read.
    """

    def __init__(self, left: socket.socket, right: socket.socket) -> None:
        self.left, self.right = left, right

    def run(self) -> None:
        back = threading.Thread(target=self._copy, args=(self.right, self.left), daemon=True)
        back.start()
        self._copy(self.left, self.right)
        back.join()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(CHUNK):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            self.close()

    def close(self) -> None:
        for side in (self.left, self.right):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
            side.close()


def main(arguments: list[str]) -> None:
    """Forwards every `PORT=SOCKET` until killed; prints `ready` once all ports are bound."""
    forwarders = [Forwarder.listen(int(port), path) for port, _, path in (pair.partition("=") for pair in arguments)]
    os.write(1, b"ready\n")
    for forwarder in forwarders:
        forwarder.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
