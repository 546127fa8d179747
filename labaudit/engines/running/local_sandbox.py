"""A sandbox that is a child process of the runner: shared by the bubblewrap and process engines.

Subclasses say how the child is launched, whom signals go to, and what was observed.
"""

from __future__ import annotations

import io
import os
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from labaudit.engines.host.surfaces import Surfaces
from labaudit.engines.observation.init_script import GO
from labaudit.engines.protocol import Streams
from labaudit.engines.result import CapturedStream, StopCause
from labaudit.engines.running.capture import pump
from labaudit.engines.running.life import REPORT_WITHIN, SandboxLife, thread
from labaudit.engines.spec import SandboxSpec, SurfacePaths
from labaudit.errors import LabauditError


@dataclass(frozen=True)
class Ending:
    """How the child ended."""

    returncode: int
    cause: StopCause
    reason: str
    stdout: CapturedStream
    stderr: CapturedStream
    report: bytes | None
    started_at: datetime
    ended_at: datetime


class LocalSandbox(SandboxLife):
    """A child process with pipes."""

    def __init__(self, spec: SandboxSpec, surfaces: Surfaces, host: SurfacePaths, inside: SurfacePaths) -> None:
        super().__init__(spec, surfaces, host, inside)
        self._process: subprocess.Popen[bytes] | None = None

    def _launch(self, stdin: int, stdout: int, stderr: int) -> subprocess.Popen[bytes]:
        raise NotImplementedError

    def _after_launch(self) -> None:
        """Runs once the child exists."""

    def _look_from_outside(self) -> None:
        """Runs once the init has reported and before the harness starts."""

    def _check_started(self) -> None:
        """Runs last; raises if the command is not there."""

    def _after_exit(self) -> None:
        """Runs in the reaping thread as soon as the main process is gone."""

    def start(self) -> None:
        self._prepare()
        out_pipe, err_pipe = os.pipe(), os.pipe()
        in_pipe = os.pipe() if self.spec.attach or self.reports else None
        try:
            process = self._launch(in_pipe[0] if in_pipe else subprocess.DEVNULL, out_pipe[1], err_pipe[1])
        except BaseException:
            self._not_launched()
            for descriptor in (out_pipe[0], err_pipe[0], *(in_pipe[1:] if in_pipe else ())):
                os.close(descriptor)
            raise
        finally:
            for descriptor in (out_pipe[1], err_pipe[1], *(in_pipe[:1] if in_pipe else ())):
                os.close(descriptor)
        self._process, self._launched = process, True
        stdin = os.fdopen(in_pipe[1], "wb", buffering=0) if in_pipe else None
        pumps = [thread(pump, out_pipe[0], self._out), thread(pump, err_pipe[0], self._err)]
        thread(self._reap, process, pumps)
        self._after_launch()
        self._err.reported.wait(REPORT_WITHIN)
        self._look_from_outside()
        if stdin is not None:
            self._let_go(stdin)
        self._check_started()

    def _let_go(self, stdin: io.FileIO) -> None:
        """Tells the waiting init to become the harness; its stdin stays open only where the spec asked to attach."""
        if self.reports:
            with suppress(OSError):
                stdin.write(GO)
        if self.spec.attach:
            self._streams = Streams(stdin, *self._live_readers)
        else:
            stdin.close()

    def _reap(self, process: subprocess.Popen[bytes], pumps: list[threading.Thread]) -> None:
        process.wait()
        self._ended_at = datetime.now(UTC)
        self._after_exit()
        for pumping in pumps:
            pumping.join(2.0)  # a process that escaped may hold the pipe open; the trial is over all the same
        self._close_captures()
        self._ended.set()

    def _ending(self, timeout: float | None) -> Ending:
        self._await_end(timeout)
        if self._captured is None or self._process is None:
            raise LabauditError("the sandbox ended without a result")
        stdout, stderr = self._captured
        return Ending(
            self._process.returncode, self._cause or "exited", self._reason, stdout, stderr, self._err.report,
            self._started_at, self._ended_at,
        )  # fmt: skip
