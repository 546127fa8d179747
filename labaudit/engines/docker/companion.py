"""A container of our own beside a trial: made hardened, waited for until it says `ready`, asked whether it lives."""

from __future__ import annotations

import socket
import time
from contextlib import suppress

import docker

from labaudit.engines.docker.api import BROKEN, Facts, calling, create
from labaudit.engines.docker.attached import attach, demultiplex
from labaudit.engines.protocol import ExecResult
from labaudit.engines.running.capture import StreamCapture
from labaudit.engines.running.life import thread
from labaudit.errors import EnvironmentLacks
from labaudit.network.program import READY

_READY_WITHIN = 20.0


class Companion:
    """From create to remove. EnvironmentLacks where it does not get ready; then nothing of it is left."""

    def __init__(self, client: docker.APIClient, body: Facts, what: str, *, ready: bytes = READY) -> None:
        self._client, self._what, self._ready = client, what, ready
        with calling(f"make the {what}"):
            self.container = create(client, body)
        try:
            self._start()
        except BaseException:
            self.remove()
            raise

    def _start(self) -> None:
        with calling(f"start the {self._what}"):
            connection = attach(self._client, self.container, stdin=False)
            self._client.start(self.container)
        with connection:
            said = _read_until(connection, self._ready)
        if self._ready not in said:
            words = said.decode(errors="replace").strip()[-300:] or "it said nothing"
            raise EnvironmentLacks(f"the {self._what} did not get ready: {words}", where="docker")

    def alive(self) -> bool:
        """Whether its main process still runs."""
        with suppress(*BROKEN):
            return bool(self._client.inspect_container(self.container)["State"]["Running"])
        return False

    def remove(self) -> None:
        """Ends it. Idempotent."""
        if self.container:
            with suppress(*BROKEN):
                self._client.remove_container(self.container, force=True, v=True)
            self.container = ""


def run_once(client: docker.APIClient, body: Facts, seconds: float) -> ExecResult:
    """One container from start to end, for a program of ours; killed after `seconds`."""
    out, err = StreamCapture(1 << 20, 0), StreamCapture(1 << 16, 0)
    with calling("make a container"):
        container = create(client, body)
    try:
        with calling("run a container"), attach(client, container, stdin=False) as connection:
            client.start(container)
            reading = thread(demultiplex, connection, out, err)
            reading.join(seconds)
            if reading.is_alive():
                client.kill(container)
                reading.join(5)
            code = int(client.wait(container, timeout=None)["StatusCode"])
    finally:
        with suppress(*BROKEN):
            client.remove_container(container, force=True, v=True)
    return ExecResult(code, out.finish().head, err.finish().head)


def _read_until(connection: socket.socket, ready: bytes) -> bytes:
    said, deadline = b"", time.monotonic() + _READY_WITHIN
    while ready not in said and time.monotonic() < deadline:
        connection.settimeout(max(0.01, deadline - time.monotonic()))
        try:
            chunk = connection.recv(4096)
        except OSError:
            break
        if not chunk:
            break
        said += chunk
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    return said
