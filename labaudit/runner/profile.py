"""What a sandbox was found to be, held against its sanitization profile: the invariants that did not hold, in words.

The seed's `ProfileEnforcer.check(runtime_state)`. The profiles are data, in `policies/profiles.json`. Limits that an
engine cannot enforce are caps on a grade, not violations; what was asked for plays no part beyond naming what should
have been found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from labaudit.engines.protocol import NetworkEvidence, NotObserved, Observed, ObservedMount
from labaudit.resources import policy_path

# Kernel file systems and device nodes that every sandbox has; nothing written there outlives it.
_KERNEL = {"proc", "sysfs", "devpts", "mqueue", "cgroup", "cgroup2", "devtmpfs", "tmpfs", "nsfs"}
_ENFORCING = {
    "none": {"docker_none", "bubblewrap_netns"},
    "allowlist_enforced": {"unix_socket_proxy"},
    "full": {"none"},
}


@dataclass(frozen=True)
class Profile:
    """What one sanitization profile permits."""

    name: str
    networks: tuple[str, ...]
    writable: tuple[str, ...]
    """Surfaces that a trial may write to; they are its own and gone afterwards, or collected."""
    read_only: tuple[str, ...]

    @property
    def surfaces(self) -> tuple[str, ...]:
        """Every place of the contract, as `state_inventory.json` lists it."""
        return (*self.read_only, *self.writable)


@cache
def profiles() -> dict[str, Profile]:
    """The bundled profiles by name."""
    rows = json.loads(policy_path("profiles.json").read_bytes())
    return {name: Profile(name, **{key: tuple(value) for key, value in row.items()}) for name, row in rows.items()}


@dataclass(frozen=True)
class RuntimeState:
    """What was observed of one trial, or of the run's egress self-test."""

    profile: str
    network: NetworkEvidence
    observed: Observed
    self_test_passed: bool | None
    """None where no self-test was due."""


class ProfileEnforcer:
    """Checks a runtime state against its profile."""

    @staticmethod
    def check(state: RuntimeState) -> tuple[str, ...]:
        """The violations, each one sentence; none means that every invariant held."""
        return tuple(sentence for rule in _RULES for sentence in rule(state))


def leaks(profile: Profile, observed: Observed) -> tuple[str, ...]:
    """Places that the trial could write to though they are not its own: outside the surfaces, or its inputs."""
    if isinstance(observed.mounts, NotObserved):
        return ()
    return tuple(f"{mount.path} ({mount.fstype}) is writable" for mount in observed.mounts if _is_leak(profile, mount))


def _is_leak(profile: Profile, mount: ObservedMount) -> bool:
    if not mount.writable or mount.path == "/":  # the root has a cap of its own
        return False
    if _lies_in(mount.path, profile.read_only):
        return True
    return mount.fstype not in _KERNEL and not _lies_in(mount.path, profile.writable)


def _lies_in(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or path.startswith(place + "/") for place in places)


def _the_profile_permits_the_network(state: RuntimeState) -> Iterator[str]:
    permitted = profiles()[state.profile].networks
    if state.network.mode_effective not in permitted:
        yield f"network {state.network.mode_effective} was found, {state.profile} permits {' or '.join(permitted)}"


def _the_mode_found_is_the_mode_asked_for(state: RuntimeState) -> Iterator[str]:
    network = state.network
    if network.mode_effective != network.mode_requested:
        yield f"network {network.mode_requested} was asked for, {network.mode_effective} was found"


def _enforcement_was_observed(state: RuntimeState) -> Iterator[str]:
    network = state.network
    if network.enforcement not in _ENFORCING[network.mode_requested]:
        yield f"network {network.mode_requested} was not enforced (found: {network.enforcement})"


def _the_self_test_passed(state: RuntimeState) -> Iterator[str]:
    if state.self_test_passed is False:
        yield "the egress self-test did not pass"


def _nothing_else_is_writable(state: RuntimeState) -> Iterator[str]:
    yield from leaks(profiles()[state.profile], state.observed)


_RULES: tuple[Callable[[RuntimeState], Iterator[str]], ...] = (
    _the_profile_permits_the_network,
    _the_mode_found_is_the_mode_asked_for,
    _enforcement_was_observed,
    _the_self_test_passed,
    _nothing_else_is_writable,
)
