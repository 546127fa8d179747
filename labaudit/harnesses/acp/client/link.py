"""A way to an agent's pipes: a child process on this machine, or any object with the same four methods."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from labaudit.engines.protocol import Streams
from labaudit.harnesses.acp.client.failures import AgentFailure


class AgentLink(Protocol):
    """Starts an agent once, hands out its pipes, ends it."""

    def open(self) -> Streams:
        """Starts the agent; AgentFailure `not_started` when that cannot be done."""
        ...

    def running(self) -> bool:
        """Whether the agent still runs."""
        ...

    def ending(self) -> str:
        """How it ended, in a few words; empty while it runs or when nobody can know."""
        ...

    def stop(self, grace_s: float) -> None:
        """Ends it: politely, then not. Idempotent."""
        ...


class ProcessLink:
    """The agent as a child process in a process group of its own. No isolation: a trial uses a sandbox instead."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        withheld: Sequence[str] = (),
    ) -> None:
        self.command = tuple(command)
        self._cwd = cwd
        # The agent sees our environment but for the names withheld (say, a token that is ours alone).
        self._env = {**environment_without(withheld), **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id."""
        return self._process.pid if self._process else None

    def open(self) -> Streams:
        """Starts the command with its three streams as pipes."""
        try:
            process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=self._cwd,
                env=self._env,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise AgentFailure(
                "not_started",
                f"the agent cannot be started: {reason}",
                where=self.command[0] if self.command else "",
                hint="check the command and the working directory",
            ) from error
        self._process = process
        return Streams(
            cast(BinaryIO, process.stdin), cast(BinaryIO, process.stdout), cast(BinaryIO, process.stderr)
        )

    def running(self) -> bool:
        """True until the child was seen to end."""
        return self._process is not None and self._process.poll() is None

    def ending(self) -> str:
        """`exit code 3` or `signal 9`."""
        code = self._process.poll() if self._process else None
        if code is None:
            return ""
        return f"exit code {code}" if code >= 0 else f"signal {-code}"

    def stop(self, grace_s: float) -> None:
        """SIGTERM to the group, grace, SIGKILL to the group."""
        process = self._process
        if process is None:
            return
        for number, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
            if process.poll() is not None and number == signal.SIGTERM:
                break
            _signal_group(process.pid, number)
            _wait(process, wait_s)
        # Children that outlive their parent still hold the pipes.
        _signal_group(process.pid, signal.SIGKILL)


def environment_without(withheld: Sequence[str]) -> dict[str, str]:
    """Our environment but for these names."""
    return {name: value for name, value in os.environ.items() if name not in withheld}


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)

