"""A sandbox with attached streams as the way to an agent."""

from __future__ import annotations

from collections.abc import Callable

from labaudit.engines.protocol import Sandbox, Streams

OVER = "the conversation is over"


class SandboxLink:
    """Starts the sandbox once; its end is the engine's to see and to say."""

    def __init__(self, sandbox: Sandbox, on_started: Callable[[], None]) -> None:
        self._sandbox = sandbox
        self._on_started = on_started
        self._started = False

    def open(self) -> Streams:
        """Starts the command inside; what the engine raises passes through."""
        self._sandbox.start()
        self._started = True
        self._on_started()
        return self._sandbox.streams

    def running(self) -> bool:
        """As the engine sees it."""
        return self._started and self._sandbox.running()

    def ending(self) -> str:
        """The sandbox's result says how it ended; here only that it did."""
        return "" if self.running() else "the sandbox's command ended"

    def stop(self, grace_s: float) -> None:
        """SIGTERM, the sandbox's own grace, SIGKILL."""
        if self.running():
            self._sandbox.stop(OVER)
