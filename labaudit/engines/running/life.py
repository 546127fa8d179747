"""The life of one sandbox, whatever runs it: surfaces, captured streams, the timeout, and who asked for the end.

Engines say how to start, whom signals go to and what was observed. Everything about time lives here: the timeout,
SIGTERM, the grace, SIGKILL.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from labaudit.engines.host.surfaces import Surfaces
from labaudit.engines.protocol import Streams
from labaudit.engines.result import CapturedStream, Collection, StopCause
from labaudit.engines.running.capture import StreamCapture
from labaudit.engines.running.collect import collect
from labaudit.engines.spec import SandboxSpec, SurfacePaths
from labaudit.errors import BadInput, LabauditError

REPORT_WITHIN = 30.0
DIES_WITHIN = 15.0


class SandboxLife:
    """A sandbox with captured streams and a bounded life."""

    reports = True
    """Whether an init report is expected at the head of stderr."""

    def __init__(self, spec: SandboxSpec, surfaces: Surfaces, host: SurfacePaths, inside: SurfacePaths) -> None:
        self.spec, self.surfaces = spec, surfaces
        self._host, self._inside = host, inside
        self._streams: Streams | None = None
        self._live_readers: tuple[BinaryIO, ...] = ()
        self._out, self._err = StreamCapture(0, 0), StreamCapture(0, 0)
        self._captured: tuple[CapturedStream, CapturedStream] | None = None
        self._launched = False
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._cause: StopCause | None = None
        self._reason = ""
        self._began, self._started_at, self._ended_at = 0.0, datetime.now(UTC), datetime.now(UTC)
        self._removed = self._paused = False

    # --- what engines provide ---

    def _signal(self, number: int) -> None:
        """Sends a signal to the harness's main process."""
        raise NotImplementedError

    def _kill_all(self) -> None:
        """SIGKILL to everything in the sandbox."""
        raise NotImplementedError

    def _freeze(self) -> None:
        """Stops every process of the sandbox where it stands."""
        raise NotImplementedError

    def _thaw(self) -> None:
        """Lets them go on."""
        raise NotImplementedError

    def _give_back(self) -> None:
        """Returns what else the engine holds for this sandbox."""

    # --- the protocol ---

    @property
    def host(self) -> SurfacePaths:
        return self._host

    @property
    def inside(self) -> SurfacePaths:
        return self._inside

    @property
    def streams(self) -> Streams:
        if self._streams is None:
            raise LabauditError("this sandbox has no live streams", hint="set attach in its spec, then start it")
        return self._streams

    def running(self) -> bool:
        return self._launched and not self._ended.is_set()

    def stop(self, reason: str) -> None:
        self._end("stopped", reason, graceful=True)

    def kill(self, reason: str) -> None:
        self._end("killed", reason, graceful=False)

    def pause(self) -> None:
        self._freeze()
        self._paused = True

    def unpause(self) -> None:
        if self._paused:
            self._paused = False
            self._thaw()

    def collect_outputs(self, destination: Path) -> Collection:
        if self.running():
            raise LabauditError("outputs are collected after the sandbox has ended")
        return collect(Path(self._host.out), destination, max_bytes=self.spec.limits.out_mb << 20)

    def remove(self) -> None:
        if self._removed:
            return
        self._removed = True
        if self.running():
            self.kill("the sandbox was removed")
        if self._streams is not None:
            for stream in (self._streams.stdin, self._streams.stdout, self._streams.stderr):
                with suppress(OSError):
                    stream.close()
        try:
            self._give_back()
        finally:
            self.surfaces.remove()

    # --- for the engines ---

    def _prepare(self) -> None:
        """Hands the surfaces over, opens the captures and starts the clock."""
        if self._began:
            raise LabauditError("this sandbox was started already")
        self.surfaces.hand_over()
        limits, live = self.spec.limits, self._live_pipes() if self.spec.attach else (None, None)
        bounds = (limits.log_head_bytes, limits.log_tail_bytes)
        self._out = StreamCapture(*bounds, live_fd=live[0])
        self._err = StreamCapture(*bounds, live_fd=live[1], expects_report=self.reports)
        self._began, self._started_at = time.monotonic(), datetime.now(UTC)

    def _not_launched(self) -> None:
        """The start failed: gives the live pipes back."""
        for capture in (self._out, self._err):
            capture.close_live()
        for reader in self._live_readers:
            reader.close()

    def _close_captures(self) -> None:
        """The streams are at their end."""
        self._captured = (self._out.finish(), self._err.finish())

    def _await_end(self, timeout: float | None) -> None:
        """Blocks until the end, which comes at the timeout at the latest."""
        if not self._launched:
            raise LabauditError("this sandbox was not started")
        limit = timeout if timeout is not None else self.spec.timeout_s
        remaining = None if limit is None else max(0.0, self._began + limit - time.monotonic())
        if not self._ended.wait(remaining):
            self._end("timeout", f"ran longer than {limit:g} s", graceful=True)
        if not self._ended.wait(DIES_WITHIN):
            raise LabauditError("the sandbox does not die", hint="a process may hang in the kernel; see `dmesg`")

    def _end(self, cause: StopCause, reason: str, *, graceful: bool) -> None:
        with self._lock:
            if not self.running():
                return
            if self._cause is None:
                self._cause, self._reason = cause, reason
        with suppress(OSError):
            self.unpause()  # what is frozen cannot die
        if graceful:
            with suppress(OSError):
                self._signal(signal.SIGTERM)
            if self._ended.wait(self.spec.grace_s):
                return
        self._kill_all()
        self._ended.wait(DIES_WITHIN)

    def _live_pipes(self) -> tuple[int, int]:
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        self._live_readers = (os.fdopen(out_read, "rb"), os.fdopen(err_read, "rb"))
        return out_write, err_write


def missing_command(command: tuple[str, ...], where: str) -> BadInput:
    """The error for a command that the image does not have."""
    return BadInput(
        f'the command "{command[0]}" is not there or not executable',
        where=where,
        hint="check runtime.harness.command; paths are as seen inside the sandbox",
    )


def thread(target: object, *arguments: object) -> threading.Thread:
    """A daemon thread, already running."""
    made = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
    made.start()
    return made
