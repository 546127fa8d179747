"""From raw reports to what was in force: gaps are values, the worse witness counts, options play no part."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labaudit.engines.observation.in_force import not_in_force
from labaudit.engines.observation.merge import merge
from labaudit.engines.observation.network_facts import network_evidence
from labaudit.engines.observation.read_report import command_was_missing, read_report
from labaudit.engines.observed import NotObserved, Observed, ObservedLimits, ObservedMount
from labaudit.engines.spec import Limits, NetworkSpec, SandboxLabels, SandboxSpec

STATUS = """== /proc/self/status
Uid:\t65532\t65532\t65532\t65532
Gid:\t65532\t65532\t65532\t65532
CapInh:\t0000000000000000
CapPrm:\t0000000000000000
CapEff:\t0000000000000000
CapBnd:\t0000000000000000
CapAmb:\t0000000000000000
NoNewPrivs:\t1
Seccomp:\t2
"""
MOUNTS = """== /proc/self/mountinfo
1 0 0:1 / / ro,relatime - overlay overlay ro,lowerdir=/x
2 1 0:2 / /out rw,nosuid,nodev - tmpfs labaudit rw,size=65536k,nr_inodes=16384
3 1 0:3 / /workspace rw,nosuid - tmpfs labaudit rw,size=256m,nr_inodes=16k
4 1 0:4 / /a\\040b rw - ext4 /dev/x rw
"""
NET = "== /proc/net/dev\nInter-|\n face |bytes\n    lo: 0 0\n== /proc/net/route\nIface Destination Gateway\n"
REST = (
    "== /etc/resolv.conf\nnameserver 127.0.0.1\n== /sys/fs/cgroup/memory.max\n536870912\n"
    "== /sys/fs/cgroup/pids.max\n128\n"
    "== /sys/fs/cgroup/cpu.max\n100000 100000\n== ulimit\nnproc 96365\nfsize unlimited\n== command found\n"
)
REPORT = (STATUS + MOUNTS + NET + REST).encode()
SPEC = SandboxSpec("sha256:0", ("true",), SandboxLabels("r", "t"))


def seen(**changes: object) -> Observed:
    return replace(read_report(REPORT), **changes)  # type: ignore[arg-type]


def missing(observed: Observed, spec: SandboxSpec = SPEC) -> dict[str, str]:
    return {item.what: item.why for item in not_in_force(spec, observed)}


def test_a_whole_report_is_read_and_everything_is_in_force() -> None:
    found = seen()
    assert (found.uid, found.capabilities, found.no_new_privs, found.seccomp_mode) == (65532, frozenset(), True, 2)
    assert (found.root_read_only, found.interfaces, found.routes, found.resolvers) == (True, (), (), ("127.0.0.1",))
    assert (found.limits.memory_bytes, found.limits.pids, found.limits.cpus) == (512 << 20, 128, 1.0)
    assert found.limits.file_size_rlimit is None
    assert isinstance(found.mounts, tuple)
    by_path = {mount.path: mount for mount in found.mounts}
    assert (by_path["/out"].size_bytes, by_path["/out"].inodes) == (64 << 20, 16384)
    assert (by_path["/workspace"].size_bytes, by_path["/workspace"].inodes) == (256 << 20, 16 << 10)
    assert by_path["/a b"].writable
    assert missing(found) == {}


@given(st.binary(max_size=400))
def test_any_bytes_are_read_without_a_crash_and_never_look_good(data: bytes) -> None:
    found = read_report(data)
    if b"Seccomp:" not in data:
        assert isinstance(found.seccomp_mode, NotObserved)
        assert "seccomp" in missing(found)


@pytest.mark.parametrize("line", STATUS.splitlines()[1:])
def test_a_line_that_is_missing_is_not_observed_and_not_in_force(line: str) -> None:
    found = read_report(REPORT.replace(line.encode() + b"\n", b""))
    if not line.startswith("Gid"):
        assert missing(found) != {}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"uid": 0}, "non_root_user"),
        ({"capabilities": frozenset({"net_raw"})}, "capabilities"),
        ({"no_new_privs": False}, "no_new_privs"),
        ({"seccomp_mode": 0}, "seccomp"),
        ({"root_read_only": False}, "read_only_root"),
        ({"resolvers": ("10.0.0.2",)}, "resolvers"),
        ({"mounts": (ObservedMount("/out", "ext4", True), ObservedMount("/workspace", "ext4", True))}, "out_mb"),
        ({"limits": ObservedLimits(None, 1.0, 128)}, "memory_mb"),
        ({"limits": ObservedLimits(512 << 20, 2.0, 128)}, "cpus"),
        ({"limits": ObservedLimits(512 << 20, 1.0, NotObserved("gone"), NotObserved("gone"))}, "pids"),
    ],
)
def test_what_is_not_as_it_was_asked_for_is_named(changes: dict[str, object], what: str) -> None:
    assert what in missing(seen(**changes))


def test_a_larger_limit_than_asked_for_is_not_in_force() -> None:
    tight = replace(SPEC, limits=Limits(memory_mb=256))
    assert "asked for was" in missing(seen(), tight)["memory_mb"]


def test_version_1_groups_are_read_too() -> None:
    report = b"== /sys/fs/cgroup/memory/memory.limit_in_bytes\n9223372036854771712\n"
    report += b"== /sys/fs/cgroup/pids/pids.max\n7\n"
    report += b"== /sys/fs/cgroup/cpu/cpu.cfs_quota_us\n50000\n== /sys/fs/cgroup/cpu/cpu.cfs_period_us\n100000\n"
    limits = read_report(report).limits
    assert (limits.memory_bytes, limits.pids, limits.cpus) == (None, 7, 0.5)


def test_where_witnesses_differ_the_worse_counts_and_the_difference_is_kept() -> None:
    worse = {"seccomp_mode": 0, "interfaces": ("eth0",), "no_new_privs": False}
    merged = merge(seen(), seen(capabilities=frozenset({"sys_admin"}), witnesses=("host",), **worse))
    assert (merged.seccomp_mode, merged.interfaces, merged.no_new_privs) == (0, ("eth0",), False)
    assert merged.capabilities == frozenset({"sys_admin"})
    assert len(merged.disagreements) == 4
    assert merged.witnesses == ("init", "host")


def test_a_witness_that_saw_nothing_adds_its_reason() -> None:
    merged = merge(seen(), None, "it was gone")
    assert merged.absent == ("host: it was gone",)
    assert merged.seccomp_mode == 2


@pytest.mark.parametrize(
    ("changes", "proxied", "expected"),
    [
        ({}, False, ("none", "docker_none", "none")),
        ({}, True, ("allowlist_enforced", "unix_socket_proxy", "residual")),
        ({"interfaces": ("eth0",)}, False, ("full", "none", "high")),
        ({"interfaces": ("eth0",)}, True, ("full", "none", "high")),
        ({"interfaces": NotObserved("gone")}, True, ("full", "unknown", "unknown")),
        ({"seccomp_mode": 0}, False, ("none", "docker_none", "residual")),
        ({"seccomp_mode": NotObserved("gone")}, True, ("allowlist_enforced", "unix_socket_proxy", "high")),
    ],
)
@pytest.mark.parametrize("asked", ["none", "full", "allowlist_enforced"])
def test_the_network_in_force_is_what_was_seen_whatever_was_asked_for(
    changes: dict[str, object], proxied: bool, expected: tuple[str, str, str], asked: str
) -> None:
    found = network_evidence(NetworkSpec(asked), seen(**changes), "docker", proxied=proxied)  # type: ignore[arg-type]
    assert (found.mode_effective, found.enforcement, found.bypass_risk) == expected
    assert found.mode_requested == asked


def test_a_missing_command_is_told_by_the_init_alone() -> None:
    assert command_was_missing(b"== ulimit\n== command missing\n")
    assert not command_was_missing(b"== x\nprints == command missing\n")
    assert not command_was_missing(None)
