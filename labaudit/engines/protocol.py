"""The one protocol that docker, bubblewrap and process engines speak.

The life of a sandbox, as the runner drives it::

    engine, why = select_engine("auto")                   # labaudit.engines.select
    image = engine.resolve_image(None)                    # None: the bundled image
    sandbox = engine.open(SandboxSpec(image=image.id, command=(...), labels=...))
    try:
        write files below sandbox.host.input (and .workspace, .state) ...
        sandbox.start()
        ... tail sandbox.host.out, write sandbox.host.state, sandbox.pause() / unpause() ...
        result = sandbox.wait(timeout)                    # SIGTERM at the timeout, SIGKILL after the grace
        outputs = sandbox.collect_outputs(destination)    # safe: regular files only, refusals recorded
    finally:
        sandbox.remove()                                  # idempotent; stops what still runs
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal, Protocol, Self, runtime_checkable

from labaudit.engines.observed import (
    NotObserved,
    Observed,
    ObservedLimits,
    ObservedMount,
    nothing_observed,
)
from labaudit.engines.result import (
    CapturedStream,
    CollectedFile,
    Collection,
    NetworkEvidence,
    OomEvidence,
    RefusedEntry,
    SandboxResult,
    Unenforced,
)
from labaudit.engines.spec import (
    INSIDE,
    PROXY_PORT,
    Limits,
    LoopbackService,
    NetworkMode,
    NetworkSpec,
    ReadOnlyMount,
    SandboxLabels,
    SandboxSpec,
    SurfacePaths,
)

EngineName = Literal["docker", "bubblewrap", "process"]

__all__ = [
    "INSIDE", "PROXY_PORT", "CapturedStream", "CollectedFile", "Collection", "Engine", "EngineName", "ExecResult",
    "Limits", "LoopbackService", "NetworkEvidence", "NetworkMode", "NetworkSpec", "NotObserved", "Observed",
    "ObservedLimits", "ObservedMount", "OomEvidence", "ReadOnlyMount", "Reaped", "RefusedEntry", "ResolvedImage",
    "Sandbox", "SandboxLabels", "SandboxResult", "SandboxSpec", "Streams", "SurfacePaths", "Unenforced",
    "nothing_observed",
]  # fmt: skip


@dataclass(frozen=True)
class ResolvedImage:
    """An image by id. `name` is what was asked for; `id` ("sha256:<hex>") is what runs."""

    id: str
    name: str
    source: Literal["bundled", "engine", "archive", "host"]
    notes: tuple[str, ...] = ()
    packages: tuple[tuple[str, str], ...] = ()
    """(name, version) of the Debian packages of a bundled image; empty where unknown."""
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Streams:
    """Live byte pipes of an attached sandbox. Reading must go on, or the harness will wait for room to write."""

    stdin: BinaryIO
    stdout: BinaryIO
    stderr: BinaryIO


@dataclass(frozen=True)
class ExecResult:
    """One extra command run inside a sandbox that is already running."""

    exit_code: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True)
class Reaped:
    """A leftover of an earlier, dead runner that was cleared away."""

    kind: Literal["container", "network", "process", "cgroup", "mount", "folder"]
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Sandbox(Protocol):
    """One trial's sandbox, from its prepared surfaces to its removal."""

    @property
    def host(self) -> SurfacePaths:
        """Host paths of the surfaces, usable before, during and after the run until `remove`."""

    @property
    def inside(self) -> SurfacePaths:
        """The same surfaces as the harness sees them; this is what trial_input.json must say."""

    @property
    def streams(self) -> Streams:
        """Live pipes; only where the spec asked to attach."""

    def start(self) -> None:
        """Fixes ownership of the surfaces and starts the command. BadInput if the command is not there."""

    def running(self) -> bool:
        """Whether the command still runs."""

    def wait(self, timeout: float | None = None) -> SandboxResult:
        """Blocks until the end. `timeout` (default: the spec's) counts from start; then SIGTERM, grace, SIGKILL."""

    def stop(self, reason: str) -> None:
        """SIGTERM, grace, SIGKILL, from any thread; `wait` then returns with cause `stopped` and this reason."""

    def kill(self, reason: str) -> None:
        """SIGKILL at once, from any thread."""

    def pause(self) -> None:
        """Freezes every process of the sandbox (for a checkpoint)."""

    def unpause(self) -> None:
        """Lets them go on."""

    def execute(self, command: tuple[str, ...], timeout: float = 30.0) -> ExecResult:
        """Runs one more command inside, under the same confinement."""

    def collect_outputs(self, destination: Path) -> Collection:
        """After the end: copies /out to `destination`, never following links; what is odd is refused, recorded."""

    def remove(self) -> None:
        """Stops what still runs and gives back containers, mounts, cgroups, sockets and folders. Idempotent."""


@runtime_checkable
class Engine(Protocol):
    """A way to run sandboxes."""

    @property
    def name(self) -> EngineName: ...

    def facts(self) -> dict[str, object]:
        """Versions and features of the engine, as evidence; no environment values, no host paths."""

    def resolve_image(self, reference: str | None) -> ResolvedImage:
        """A name, an id, a docker-save archive, or None for the bundled image. EnvironmentLacks if it is not there."""

    def image_archive(self, image_id: str, folder: Path) -> Path | None:
        """The image as a docker-save archive: at hand, or written into `folder`; None where there is no image."""

    def open(self, spec: SandboxSpec) -> Sandbox:
        """Prepares the surfaces and, for an allowlist, the proxy. Nothing of the harness runs yet."""

    def reap(self) -> tuple[Reaped, ...]:
        """Clears leftovers whose runner is dead. Called before the first trial of a run or a resume."""

    def close(self) -> None:
        """Ends pooled proxies and connections."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
