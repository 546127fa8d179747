"""Accepts connections on the proxy's socket and logs what became of each; bounded, and drained between trials."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from .connection import Connection
from .decisions import Decision, DecisionLog
from .limits import ProxyLimits
from .rules import Rules
from .wires import Resolve, hang_up, resolve_name

DRAINED_WITHIN = 5.0
_CLOSE_AGAIN = 0.25


class ProxyServer:
    """A listening socket (any stream kind), rules, and a log."""

    def __init__(
        self,
        listener: socket.socket,
        rules: Rules,
        log: DecisionLog,
        *,
        limits: ProxyLimits | None = None,
        resolve: Resolve = resolve_name,
        on_failure: Callable[[OSError], None] = lambda error: None,
    ) -> None:
        self._listener, self._rules, self._log, self._resolve = listener, rules, log, resolve
        self._limits = limits or ProxyLimits()
        self._on_failure = on_failure
        self._open: set[Connection] = set()
        self._idle = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def start(self) -> None:
        """Begins to accept."""
        self._thread.start()

    def drain(self) -> int:
        """Drops every open connection, waits for their lines, starts the log anew; gives the log's size.

        TimeoutError if a connection will not end: the caller must then give up this proxy.
        """
        deadline = time.monotonic() + DRAINED_WITHIN
        with self._idle:
            while self._open:
                # again and again: one that is just between two addresses has another socket a moment later
                for connection in self._open:
                    connection.close()
                if not self._idle.wait_for(lambda: not self._open, _CLOSE_AGAIN) and time.monotonic() > deadline:
                    raise TimeoutError("connections are still open")
        return self._log.end_of_trial()

    def close(self) -> None:
        """Stops accepting, then drains."""
        self._closed = True
        hang_up(self._listener)
        self._listener.close()
        with suppress(TimeoutError, OSError):
            self.drain()

    def flush(self) -> None:
        """Writes what a flood has counted so far."""
        try:
            self._log.flush()
        except OSError as error:
            self._fail(error)

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                if self._closed or self._listener.fileno() < 0:
                    return
                time.sleep(0.05)  # out of descriptors, say: others must end first
                continue
            connection = Connection(client, self._rules, self._resolve, self._limits)
            with self._idle:
                full = len(self._open) >= self._limits.connections
                if not full:
                    self._open.add(connection)
            if full or not self._started(connection):
                client.close()
                self._write([Decision("block", "too_many_connections", reason="all connections are in use")])

    def _started(self, connection: Connection) -> bool:
        """Gives the connection its thread; False where the machine has none left."""
        try:
            threading.Thread(target=self._run, args=(connection,), daemon=True).start()
        except RuntimeError:
            self._ended(connection)
            return False
        return True

    def _run(self, connection: Connection) -> None:
        try:
            self._write(connection.run())
        finally:
            self._ended(connection)

    def _ended(self, connection: Connection) -> None:
        with self._idle:
            self._open.discard(connection)
            self._idle.notify_all()

    def _write(self, decisions: list[Decision]) -> None:
        try:
            for decision in decisions:
                self._log.write(decision)
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        """A decision that cannot be recorded: nothing more is let through."""
        self._closed = True
        hang_up(self._listener)
        with self._idle:
            for connection in self._open:
                connection.close()
        self._on_failure(error)
