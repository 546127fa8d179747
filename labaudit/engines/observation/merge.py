"""Two witnesses of one sandbox into one account: what only one saw is taken, where they differ the worse counts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeVar

from labaudit.engines.observed import NotObserved, Observed

T = TypeVar("T")
Fact = TypeVar("Fact", frozenset[str], bool, int, tuple[str, ...])


def merge(init: Observed, host: Observed | None, why_no_host: str = "") -> Observed:
    """The init's account, checked against the host's. User ids are not compared: namespaces translate them."""
    if host is None:
        return dataclasses.replace(init, absent=(*init.absent, f"host: {why_no_host}"))
    notes: list[str] = []
    return dataclasses.replace(
        init,
        uid=_either(init.uid, host.uid),
        gid=_either(init.gid, host.gid),
        capabilities=_worse(init.capabilities, host.capabilities, "capabilities", notes, _all_of),
        no_new_privs=_worse(init.no_new_privs, host.no_new_privs, "no_new_privs", notes, _both),
        seccomp_mode=_worse(init.seccomp_mode, host.seccomp_mode, "seccomp_mode", notes, _least),
        root_read_only=_worse(init.root_read_only, host.root_read_only, "root_read_only", notes, _both),
        mounts=_either(init.mounts, host.mounts),
        interfaces=_worse(init.interfaces, host.interfaces, "interfaces", notes, _joined),
        routes=_worse(init.routes, host.routes, "routes", notes, _joined),
        witnesses=tuple(dict.fromkeys((*init.witnesses, "host"))),
        disagreements=(*init.disagreements, *notes),
    )


def _either(first: T | NotObserved, second: T | NotObserved) -> T | NotObserved:
    return second if isinstance(first, NotObserved) else first


def _worse(
    first: Fact | NotObserved,
    second: Fact | NotObserved,
    name: str,
    notes: list[str],
    combine: Callable[[Fact, Fact], Fact],
) -> Fact | NotObserved:
    if isinstance(first, NotObserved) or isinstance(second, NotObserved):
        return _either(first, second)
    if first != second:
        notes.append(f"{name}: the trial's init saw {first!r}, the host {second!r}")
        return combine(first, second)
    return first


def _all_of(first: frozenset[str], second: frozenset[str]) -> frozenset[str]:
    return first | second


def _both(first: bool, second: bool) -> bool:
    return first and second


def _least(first: int, second: int) -> int:
    return min(first, second)


def _joined(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({*first, *second}))
