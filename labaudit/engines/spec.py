"""What the runner asks of an engine: one trial's sandbox, as a frozen value.

A spec names no host directory for the writable surfaces: the engine makes them (that is where the quotas are) and
shows their host paths on the sandbox, see `labaudit.engines.protocol.Sandbox.host`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

NetworkMode = Literal["none", "full", "allowlist_enforced"]

PROXY_PORT = 3128
SURFACES = ("in", "out", "workspace", "state")


@dataclass(frozen=True)
class Limits:
    """Resource bounds. What an engine cannot enforce shows up in `SandboxResult.unenforced`."""

    memory_mb: int = 512
    cpus: float = 1.0
    pids: int = 128
    out_mb: int = 64
    workspace_mb: int = 256
    state_mb: int = 64
    tmp_mb: int = 64
    files: int = 16384
    """Inodes in each of /out, /workspace and /state."""
    log_head_bytes: int = 1 << 20
    log_tail_bytes: int = 1 << 20


@dataclass(frozen=True)
class NetworkSpec:
    """The network a trial may have. `allowed_hosts` are exact `host` or `host:port` (443 if no port is named)."""

    mode: NetworkMode = "none"
    allowed_hosts: tuple[str, ...] = ()
    allowed_networks: tuple[str, ...] = ()
    pooled: bool = False
    """Reuse one proxy for the trials of a worker, one after another. Faster; recorded and graded lower."""
    pool_key: str = ""
    """Trials share a pooled proxy only if their policy and this key (worker, profile) are equal."""


@dataclass(frozen=True)
class LoopbackService:
    """A unix socket of the runner's that the trial reaches at 127.0.0.1:`port`, also with network `none`."""

    name: str
    port: int
    socket: Path


@dataclass(frozen=True)
class ReadOnlyMount:
    """A host folder or file shown read-only at `target`. A target that is a surface (say `/out`) replaces it."""

    source: Path
    target: str
    name: str


@dataclass(frozen=True)
class SandboxLabels:
    """Whose sandbox it is. Containers, cgroups and runtime folders carry it, so that leftovers can be reaped."""

    run_id: str
    trial_id: str
    attempt: int = 1


@dataclass(frozen=True)
class SandboxSpec:
    """One sandbox. `image` is an id from `Engine.resolve_image`; `user` None means the engine's non-root choice."""

    image: str
    command: tuple[str, ...]
    labels: SandboxLabels
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/workspace"
    user: tuple[int, int] | None = None
    dataset: Path | None = None
    harness: Path | None = None
    read_only: tuple[ReadOnlyMount, ...] = ()
    limits: Limits = Limits()
    network: NetworkSpec = NetworkSpec()
    services: tuple[LoopbackService, ...] = ()
    timeout_s: float | None = None
    grace_s: float = 5.0
    attach: bool = False
    """True for a talking harness (ACP): stdin stays open and `Sandbox.streams` carries stdout and stderr live."""


@dataclass(frozen=True)
class SurfacePaths:
    """Where the surfaces are: once as the harness sees them (`inside`), once as the runner does (`host`)."""

    input: str
    out: str
    workspace: str
    state: str
    dataset: str | None
    harness: str | None
    tmp: str


INSIDE = SurfacePaths(
    input="/in",
    out="/out",
    workspace="/workspace",
    state="/state",
    dataset="/dataset",
    harness="/harness",
    tmp="/tmp",  # noqa: S108, a private tmpfs inside the sandbox
)


def paths_inside(spec: SandboxSpec) -> SurfacePaths:
    """What a harness of this spec finds: a dataset and a harness folder only where they were given."""
    dataset, harness = INSIDE.dataset if spec.dataset else None, INSIDE.harness if spec.harness else None
    return replace(INSIDE, dataset=dataset, harness=harness)
