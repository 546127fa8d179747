"""A loopback server that takes in what an OpenTelemetry exporter sends: http/protobuf and http/json, gzip or not.

It listens on a unix socket, which an engine shows to the trial as a loopback port even when the trial has no network
at all, or on 127.0.0.1. Every batch becomes one redacted line of a spool file; memory does not grow with the number
of spans. Everything is bounded: body, total, connections, time.
"""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import BinaryIO

from labaudit.core.redaction import Redactor
from labaudit.errors import BadInput, EnvironmentLacks
from labaudit.evidence.otlp.http_body import Refused, read_body
from labaudit.evidence.otlp.parts import TooManyParts
from labaudit.evidence.otlp.received import ReceivedSpans
from labaudit.evidence.otlp.spans import DECODERS, response
from labaudit.store import atomic

TRACES = "/v1/traces"
SPOOL_NAME = "otlp_spans.jsonl"
MAX_BODY = 8 << 20
MAX_TOTAL = 64 << 20
MAX_CONNECTIONS = 32
IDLE_SECONDS = 10.0
MAX_PROBLEMS = 20
_TYPES = {"application/x-protobuf": "protobuf", "application/protobuf": "protobuf", "application/json": "json"}


class OtlpReceiver:
    """One trial's receiver, from `start` to `close`."""

    def __init__(self, server: _Server, spool: _Spool, socket_path: Path | None) -> None:
        self._server = server
        self._spool = spool
        self._socket_path = socket_path
        self._result: ReceivedSpans | None = None
        self._thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True, name="otlp-receiver")
        self._thread.start()

    @classmethod
    def start(
        cls,
        spool: Path,
        *,
        socket: Path | None = None,
        redactor: Redactor | None = None,
        max_body: int = MAX_BODY,
        max_total: int = MAX_TOTAL,
    ) -> OtlpReceiver:
        """Listens on the unix socket `socket`, or without one on a free port of 127.0.0.1.

        `spool` is the folder in which the file of received batches grows.
        """
        kept = _Spool(spool / SPOOL_NAME, redactor or Redactor(), max_total)
        try:
            server = _UnixServer(socket) if socket is not None else _LoopbackServer()
        except OSError as error:
            place = str(socket or "127.0.0.1")
            raise EnvironmentLacks(f"cannot listen for traces: {error.strerror or error}", where=place) from error
        server.spool, server.max_body = kept, max_body
        return cls(server, kept, socket)

    @property
    def port(self) -> int | None:
        """The TCP port, or None when it listens on a unix socket."""
        return None if self._socket_path is not None else int(self._server.server_address[1])

    def close(self) -> ReceivedSpans:
        """Ends the server once running requests are answered, and tells what came in. Idempotent."""
        if self._result is None:
            self._server.shutdown()
            self._thread.join(timeout=IDLE_SECONDS)
            self._server.end_connections(IDLE_SECONDS)
            self._server.server_close()
            if self._socket_path is not None:
                self._socket_path.unlink(missing_ok=True)
            self._result = self._spool.close()
        return self._result


class _Spool:
    """The file of batches and what is known about it."""

    def __init__(self, path: Path, redactor: Redactor, max_total: int) -> None:
        self._path = path
        self._redactor = redactor
        self._max_total = max_total
        self._lock = threading.Lock()
        self._file: BinaryIO | None = None
        self._size = self._spans = self._requests = self._refused = 0
        self._changed = False
        self._problems: list[str] = []
        self._more_problems = 0
        self._closed = False

    def add(self, form: str, body: bytes) -> int:
        """Takes in one request; returns how many of its spans were refused."""
        with self._lock:
            if self._closed:
                raise Refused(503, "the trial is over")
            try:
                batch = DECODERS[form](body)
            except TooManyParts as error:
                raise Refused(413, error.what) from error
            except BadInput as error:
                raise Refused(400, error.what) from error
            kept = self._redactor.apply(batch.line)
            line = kept.data + b"\n"
            if self._size + len(line) > self._max_total:
                raise Refused(413, f"this trial has sent more than {self._max_total} bytes of spans")
            if batch.accepted:
                self._write(line)
            self._changed |= kept.applied
            self._spans += batch.accepted
            self._refused += batch.refused
            self._requests += 1
            return batch.refused

    def note(self, problem: str) -> None:
        """Remembers why a request was not taken; a flood of them is counted."""
        with self._lock:
            if len(self._problems) < MAX_PROBLEMS:
                self._problems.append(problem)
            else:
                self._more_problems += 1

    def close(self) -> ReceivedSpans:
        with self._lock:
            self._closed = True
            if self._file is not None:
                self._file.close()
            problems = list(self._problems)
            if self._more_problems:
                problems.append(f"{self._more_problems} more requests were refused")
            if self._refused:
                problems.append(f"{self._refused} spans without ids or name were refused")
            path = self._path if self._file is not None else None
            return ReceivedSpans(path, self._spans, self._requests, self._refused, tuple(problems), self._changed)

    def _write(self, line: bytes) -> None:
        try:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._path.open("wb")
            self._file.write(line)
            self._file.flush()
        except OSError as error:
            raise atomic.explain(error, self._path) from error
        self._size += len(line)


class _Handler(BaseHTTPRequestHandler):
    """One connection; several requests may follow each other on it."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    server: _Server

    def do_POST(self) -> None:
        """Takes in one export request."""
        with self.server.working():
            self._export()

    def _export(self) -> None:
        try:
            if self.path.split("?", 1)[0].rstrip("/") != TRACES:
                raise Refused(404, f"only {TRACES} is received here")
            sent = (self.headers.get("Content-Type") or "").split(";", 1)[0].strip().lower()
            form = _TYPES.get(sent)
            if form is None:
                raise Refused(415, f"the content type {sent[:60]!r} is not understood")
            body = read_body(self.headers, self.rfile, self.server.max_body)  # type: ignore[arg-type]
            refused = self.server.spool.add(form, body)
        except Refused as error:
            self.server.spool.note(f"{self.path[:80]}: {error.what}")
            # What is left of the body would be read as the next request.
            self.close_connection = True
            self._answer(error.status, "text/plain", error.what.encode("utf-8", "replace"))
            return
        self._answer(200, "application/json" if form == "json" else "application/x-protobuf", response(form, refused))

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        with suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Silent: refusals are noted, and a trial must not be able to write to the runner's terminal."""

    def address_string(self) -> str:
        """A unix socket has no peer address."""
        return "trial"


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """A bounded number of threads, each with one connection."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 64
    spool: _Spool
    max_body: int

    def __init__(self, address: str | tuple[str, int]) -> None:
        self._slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._open: set[socket.socket] = set()
        self._open_lock = threading.Lock()
        self._idle = threading.Condition()
        self._busy = 0
        super().__init__(address, _Handler)  # type: ignore[arg-type]

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        """Hands a connection to a thread, or drops it when there are too many."""
        assert isinstance(request, socket.socket)
        if not self._slots.acquire(blocking=False):
            self.spool.note(f"more than {MAX_CONNECTIONS} connections at a time")
            self.shutdown_request(request)
            return
        with self._open_lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def process_request_thread(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """One connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            assert isinstance(request, socket.socket)
            with self._open_lock:
                self._open.discard(request)
            self._slots.release()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Around a request that is being read and answered."""
        with self._idle:
            self._busy += 1
        try:
            yield
        finally:
            with self._idle:
                self._busy -= 1
                self._idle.notify_all()

    def end_connections(self, patience: float) -> None:
        """Waits for requests under way, then ends idle connections, whose threads would wait for a next request."""
        with self._idle:
            self._idle.wait_for(lambda: not self._busy, timeout=patience)
        with self._open_lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RD)

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that broke off is the trial's affair."""
        self.spool.note("a connection broke off")


class _LoopbackServer(_Server):
    address_family = socket.AF_INET

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0))


class _UnixServer(_Server):
    address_family = socket.AF_UNIX

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        super().__init__(str(path))
        # Who may come in is decided by the folder; the forwarder of an engine may run as another user.
        path.chmod(0o666)
