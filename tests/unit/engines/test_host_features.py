"""What the kernel offers, read from a tree that looks like /."""

from __future__ import annotations

from pathlib import Path

import pytest

from labaudit.engines.checks.host_features import host_features
from labaudit.engines.checks.self_check import Check


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "proc/sys/user/max_user_namespaces", "100")
    write(tmp_path, "proc/sys/kernel/seccomp/actions_avail", "kill allow")
    write(tmp_path, "sys/fs/cgroup/cgroup.controllers", "cpu io memory pids")
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def line(root: Path, name: str) -> Check:
    return next(check for check in host_features(root) if check.name == name)


def test_a_fit_kernel_is_ok_throughout(root: Path) -> None:
    assert [check.status for check in host_features(root)][:4] == ["ok", "ok", "ok", "ok"]
    assert "version 2" in line(root, "control groups").detail


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("proc/sys/user/max_user_namespaces", "0", "missing"),
        ("proc/sys/kernel/unprivileged_userns_clone", "0", "missing"),
        ("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "degraded"),
    ],
)
def test_restricted_user_namespaces_come_with_the_fix(root: Path, name: str, value: str, status: str) -> None:
    write(root, name, value)
    found = line(root, "user namespaces")
    assert found.status == status
    assert "sysctl" in found.fix


def test_controllers_that_are_missing_are_named(root: Path) -> None:
    write(root, "sys/fs/cgroup/cgroup.controllers", "cpu io")
    found = line(root, "control groups")
    assert (found.status, "memory, pids" in found.detail) == ("degraded", True)


def test_version_1_hierarchies_are_read_from_their_folders(tmp_path: Path) -> None:
    for name in ("memory", "pids", "cpu"):
        (tmp_path / "sys/fs/cgroup" / name).mkdir(parents=True)
    assert "version 1" in line(tmp_path, "control groups").detail
    assert line(tmp_path, "control groups").status == "ok"


def test_no_seccomp_is_missing(tmp_path: Path) -> None:
    assert line(tmp_path, "seccomp").status == "missing"
