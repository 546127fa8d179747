"""The facts that were in force inside a sandbox, each with the witness that read it.

`init` is the trial's own first process, which reads /proc before it becomes the harness; `engine` is the engine's
own account; `host` is the kernel's view from outside. Unknown is a value: `NotObserved`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Witness = Literal["init", "engine", "host"]


@dataclass(frozen=True)
class NotObserved:
    """Nobody could read this; `reason` says why."""

    reason: str


@dataclass(frozen=True)
class ObservedMount:
    """One line of the sandbox's mount table."""

    path: str
    fstype: str
    writable: bool
    options: tuple[str, ...] = ()
    size_bytes: int | None = None
    inodes: int | None = None


@dataclass(frozen=True)
class ObservedLimits:
    """Limits as the kernel states them; None is "no such limit", NotObserved is "could not be read"."""

    memory_bytes: int | NotObserved | None = NotObserved("not read")
    cpus: float | NotObserved | None = NotObserved("not read")
    pids: int | NotObserved | None = NotObserved("not read")
    processes_rlimit: int | NotObserved | None = NotObserved("not read")
    file_size_rlimit: int | NotObserved | None = NotObserved("not read")


@dataclass(frozen=True)
class Observed:
    """One sandbox, as seen. `witnesses` tells which sources answered; `absent` why others did not."""

    uid: int | NotObserved
    gid: int | NotObserved
    capabilities: frozenset[str] | NotObserved
    """Effective, permitted, bounding and ambient together: whatever the trial could still get."""
    no_new_privs: bool | NotObserved
    seccomp_mode: int | NotObserved
    """0 none, 1 strict, 2 filter."""
    root_read_only: bool | NotObserved
    mounts: tuple[ObservedMount, ...] | NotObserved
    interfaces: tuple[str, ...] | NotObserved
    """Network interfaces apart from the loopback, usually none."""
    routes: tuple[str, ...] | NotObserved
    resolvers: tuple[str, ...] | NotObserved
    namespaces: dict[str, str] | NotObserved
    limits: ObservedLimits
    engine: dict[str, object] = field(default_factory=dict)
    """The engine's own account (versions, inspect facts), without environment values."""
    witnesses: tuple[Witness, ...] = ()
    absent: tuple[str, ...] = ()
    disagreements: tuple[str, ...] = ()
    """Where two witnesses said different things; the worse one counts."""


def nothing_observed(reason: str) -> Observed:
    """The record of a sandbox that nobody could look into."""
    gap = NotObserved(reason)
    return Observed(
        uid=gap,
        gid=gap,
        capabilities=gap,
        no_new_privs=gap,
        seccomp_mode=gap,
        root_read_only=gap,
        mounts=gap,
        interfaces=gap,
        routes=gap,
        resolvers=gap,
        namespaces=gap,
        limits=ObservedLimits(gap, gap, gap, gap, gap),
        absent=(reason,),
    )
