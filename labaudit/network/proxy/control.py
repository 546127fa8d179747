"""The runner's own line to a proxy: a second unix socket that no trial can reach. One word in, one line out.

`ping` answers `ok`. `drain` ends every connection, completes the log and answers with its size.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from .server import ProxyServer
from .wires import hang_up

ANSWERS_WITHIN = 10.0


class ControlSocket:
    """Serves the runner, one question at a time."""

    def __init__(self, listener: socket.socket, server: ProxyServer) -> None:
        self._listener, self._server = listener, server
        self._closed = False
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Answers no more."""
        self._closed = True
        hang_up(self._listener)
        self._listener.close()

    def _serve(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, suppress(OSError):
                client.settimeout(ANSWERS_WITHIN)
                client.sendall(self._answer(client.recv(64).strip()) + b"\n")

    def _answer(self, word: bytes) -> bytes:
        if word == b"ping":
            return b"ok"
        if word == b"drain":
            try:
                return b"%d" % self._server.drain()
            except (TimeoutError, OSError) as error:
                return b"failed: " + str(error).encode("ascii", "replace")
        return b"failed: unknown word"


def ask(path: str, word: str, seconds: float = ANSWERS_WITHIN) -> str:
    """Asks a proxy; OSError if nobody answers in time."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(seconds)
        line.connect(path)
        line.sendall(word.encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            more = line.recv(256)
            if not more:
                raise ConnectionError("the proxy gave no answer")
            answer += more
        return answer.decode("ascii", "replace").strip()
