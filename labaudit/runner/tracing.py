"""The OTLP receiver of one attempt, where the spec asks for one: reached from inside through a unix socket."""

from __future__ import annotations

import shutil
import socket as socketlib
import tempfile
from pathlib import Path
from types import TracebackType

from labaudit.core.redaction import Redactor
from labaudit.engines.protocol import LoopbackService
from labaudit.evidence.otlp.received import ReceivedSpans
from labaudit.evidence.otlp.receiver import OtlpReceiver
from labaudit.runner.sandbox_plan import OTLP_PORT


class Tracing:
    """A receiver for as long as the block lasts; nothing at all when traces are not received."""

    def __init__(self, mode: str, redactor: Redactor, spool: Path, *, shared_loopback: bool = False) -> None:
        self._wanted = mode == "otlp"
        self._redactor = redactor
        self._spool = spool
        self._shared_loopback = shared_loopback
        self._folder: Path | None = None
        self._receiver: OtlpReceiver | None = None
        self.services: tuple[LoopbackService, ...] = ()

    def __enter__(self) -> Tracing:
        if self._wanted:
            # A socket's path has 108 bytes at most, so it cannot stand in the lab folder.
            self._folder = Path(tempfile.mkdtemp(prefix="labaudit-otlp-"))
            socket = self._folder / "otlp.sock"
            self._receiver = OtlpReceiver.start(self._spool, socket=socket, redactor=self._redactor)
            self.services = (LoopbackService("otlp", self._port(), socket),)
        return self

    def _port(self) -> int:
        """The usual port, or a free one where trials that run at the same time share one loopback interface."""
        if not self._shared_loopback:
            return OTLP_PORT
        with socketlib.create_server(("127.0.0.1", 0)) as probe:
            port: int = probe.getsockname()[1]
        return port

    def received(self) -> ReceivedSpans | None:
        """Ends the receiver and returns what came in; None when there was none."""
        if self._receiver is None:
            return None
        receiver, self._receiver = self._receiver, None
        return receiver.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._receiver is not None:
            self._receiver.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
