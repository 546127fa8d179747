"""What was found, held against the bundled profiles: every invariant can fail, and says what was found."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from labaudit.engines.observed import NotObserved, ObservedMount, nothing_observed
from labaudit.engines.protocol import NetworkEvidence
from labaudit.records.fields import SanitizationProfile
from labaudit.runner.profile import ProfileEnforcer, RuntimeState, leaks, profiles

MOUNTS = (
    ObservedMount("/", "overlay", writable=False),
    ObservedMount("/proc", "proc", writable=True),
    ObservedMount("/in", "tmpfs", writable=False),
    ObservedMount("/out", "tmpfs", writable=True),
    ObservedMount("/workspace", "tmpfs", writable=True),
    ObservedMount("/dev/shm", "tmpfs", writable=True),
)
SHUT = NetworkEvidence("none", "none", "docker_none", "none")
LISTED = NetworkEvidence("allowlist_enforced", "allowlist_enforced", "unix_socket_proxy", "residual")
OPEN = NetworkEvidence("full", "full", "none", "high")


def state(profile: str, network: NetworkEvidence, *more: ObservedMount, passed: bool | None = None) -> RuntimeState:
    seen = replace(nothing_observed("not looked at"), mounts=(*MOUNTS, *more))
    return RuntimeState(profile, network, seen, passed)


def test_the_profiles_are_those_that_a_spec_may_name() -> None:
    assert set(profiles()) == set(get_args(SanitizationProfile))
    assert all(name == profile.name for name, profile in profiles().items())


@pytest.mark.parametrize(
    ("profile", "network", "passed", "holds"),
    [
        ("replay_strict_v2", SHUT, None, True),
        ("replay_strict_v2", LISTED, True, False),
        ("replay_strict_v2", OPEN, None, False),
        ("hermetic_functional_v2", SHUT, None, True),
        ("hermetic_functional_v2", LISTED, True, True),
        ("hermetic_functional_v2", OPEN, None, False),
        ("perf_benchmark_v2", SHUT, None, True),
        ("perf_benchmark_v2", LISTED, True, True),
        ("perf_benchmark_v2", OPEN, None, True),
    ],
)
def test_a_profile_permits_its_networks_and_no_other(
    profile: str, network: NetworkEvidence, passed: bool | None, holds: bool
) -> None:
    violations = ProfileEnforcer.check(state(profile, network, passed=passed))
    assert (violations == ()) is holds, violations


@pytest.mark.parametrize(
    ("network", "passed", "said"),
    [
        (replace(SHUT, mode_effective="full"), None, "network none was asked for, full was found"),
        (replace(SHUT, enforcement="unknown"), None, "network none was not enforced (found: unknown)"),
        (replace(LISTED, enforcement="none"), True, "network allowlist_enforced was not enforced (found: none)"),
        (LISTED, False, "the egress self-test did not pass"),
    ],
)
def test_what_was_found_counts_and_not_what_was_asked_for(
    network: NetworkEvidence, passed: bool | None, said: str
) -> None:
    assert said in ProfileEnforcer.check(state("perf_benchmark_v2", network, passed=passed))


@pytest.mark.parametrize("profile", sorted(get_args(SanitizationProfile)))
@pytest.mark.parametrize(
    "mount",
    [
        ObservedMount("/srv/shared", "ext4", writable=True),
        ObservedMount("/outside", "ext4", writable=True),
        ObservedMount("/in", "tmpfs", writable=True),
        ObservedMount("/harness", "ext4", writable=True),
        ObservedMount("/dataset/sub", "tmpfs", writable=True),
    ],
    ids=lambda mount: mount.path,
)
def test_a_place_that_is_not_the_trials_own_must_not_be_writable(profile: str, mount: ObservedMount) -> None:
    assert ProfileEnforcer.check(state(profile, SHUT, mount)) == (f"{mount.path} ({mount.fstype}) is writable",)


def test_mounts_that_nobody_saw_are_no_leak_and_no_proof() -> None:
    blind = nothing_observed("no witness")
    assert isinstance(blind.mounts, NotObserved)
    assert leaks(profiles()["replay_strict_v2"], blind) == ()
