"""What comes back from a sandbox: how it ended, what it printed, what was in force, what it left in /out.

Every field is something that was read or counted. A thing that could not be read is a `NotObserved` with its
reason, never a default that happens to look good.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from labaudit.engines.observed import Observed

StopCause = Literal["exited", "timeout", "stopped", "killed", "lost"]


@dataclass(frozen=True)
class CapturedStream:
    """One output stream: counted and hashed whole, kept as head and tail."""

    head: bytes
    tail: bytes
    total: int
    sha256: str

    @property
    def truncated(self) -> bool:
        return self.total > len(self.head) + len(self.tail)

    def rendered(self) -> bytes:
        """The bytes for stdout.log: whole, or head and tail with the size of the gap named between them."""
        if not self.truncated:
            return self.head + self.tail
        gap = self.total - len(self.head) - len(self.tail)
        marker = f"\n[labaudit: {gap} of {self.total} bytes left out here; sha256 of all: {self.sha256}]\n"
        return self.head + marker.encode() + self.tail


@dataclass(frozen=True)
class OomEvidence:
    """Three witnesses, kept apart: the engine's flag is true when only a child died, and exit 137 can be forged."""

    engine_flag: bool | None
    exit_137: bool
    kernel_kills: int | None
    """oom_kill count of the trial's own cgroup; None where it could not be read."""

    @property
    def verdict(self) -> Literal["main_killed", "child_killed", "none", "unknown"]:
        killed = self.kernel_kills if self.kernel_kills is not None else self.engine_flag
        if killed is None:
            return "unknown" if self.exit_137 else "none"
        if not killed:
            return "none"
        return "main_killed" if self.exit_137 else "child_killed"


@dataclass(frozen=True)
class NetworkEvidence:
    """What was seen of the trial's network. `events` are network_event_v1 lines, canonical, in order."""

    mode_requested: str
    mode_effective: str
    enforcement: str
    """docker_none, bubblewrap_netns, unix_socket_proxy, none or unknown: derived from observation."""
    bypass_risk: Literal["none", "residual", "high", "unknown"]
    allowed_hosts: tuple[str, ...] = ()
    pooled: bool = False
    events: tuple[bytes, ...] = ()
    proxy_alive_at_end: bool | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unenforced:
    """A limit or option that was asked for and is not in force, with the reason."""

    what: str
    why: str


@dataclass(frozen=True)
class SandboxResult:
    """The end of one sandbox."""

    exit_code: int | None
    signal: int | None
    cause: StopCause
    stop_reason: str
    timed_out: bool
    oom: OomEvidence
    started_at: datetime
    ended_at: datetime
    stdout: CapturedStream
    stderr: CapturedStream
    observed: Observed
    unenforced: tuple[Unenforced, ...]
    network: NetworkEvidence
    engine_error: str = ""
    """The engine's own words when the command never started (no such file, not executable)."""


@dataclass(frozen=True)
class CollectedFile:
    """One file taken from a surface; `path` is relative and uses `/`."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class RefusedEntry:
    """One thing in a surface that was not taken; `path` is escaped so that it can be printed."""

    path: str
    kind: Literal[
        "symlink",
        "fifo",
        "socket",
        "device",
        "sparse",
        "setuid",
        "hardlink",
        "too_deep",
        "bad_name",
        "too_large",
        "too_many",
        "unreadable",
        "changed",
    ]
    reason: str


@dataclass(frozen=True)
class Collection:
    """What safe collection took and what it refused."""

    files: tuple[CollectedFile, ...] = ()
    refused: tuple[RefusedEntry, ...] = field(default=())

    @property
    def total_bytes(self) -> int:
        return sum(f.size for f in self.files)
