"""What this machine's kernel offers to a sandbox, read from /proc and /sys; each line with the fix where it lacks."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

from labaudit.engines.checks.self_check import Check
from labaudit.engines.host.surfaces import runtime_folder
from labaudit.engines.images.cache import cache_folder
from labaudit.errors import LabauditError

_WANTED = {"memory", "pids", "cpu"}
_ROOM = 1 << 30


def host_features(root: Path = Path("/")) -> list[Check]:
    """Kernel, namespaces, control groups, seccomp, and room for images and surfaces."""
    kernel = Check("kernel", "version", "ok", f"{platform.system()} {platform.release()} {platform.machine()}")
    return [kernel, _namespaces(root), _control_groups(root), _seccomp(root), _folders()]


def _namespaces(root: Path) -> Check:
    most = _read(root / "proc/sys/user/max_user_namespaces")
    if most == "0" or _read(root / "proc/sys/kernel/unprivileged_userns_clone") == "0":
        fix = "sysctl -w user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1"
        return Check("kernel", "user namespaces", "missing", "switched off", fix)
    if _read(root / "proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        fix = "an AppArmor profile for bwrap, or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
        return Check("kernel", "user namespaces", "degraded", "restricted by AppArmor to programs with a profile", fix)
    if most is None:
        return Check("kernel", "user namespaces", "missing", "the kernel has none", "use a kernel with CONFIG_USER_NS")
    return Check("kernel", "user namespaces", "ok", f"up to {most}")


def _control_groups(root: Path) -> Check:
    groups = root / "sys/fs/cgroup"
    unified = _read(groups / "cgroup.controllers")
    version, there = (2, set(unified.split())) if unified is not None else (1, {p.name for p in _entries(groups)})
    missing = sorted(_WANTED - there)
    if missing:
        fix = "mount the hierarchy at /sys/fs/cgroup with these controllers; limits are unenforced without them"
        return Check("kernel", "control groups", "degraded", f"version {version}, without {', '.join(missing)}", fix)
    writable = os.access(groups / ("" if version == 2 else "memory"), os.W_OK)
    note = "" if writable else "; not writable for this user, so only docker can set limits"
    return Check("kernel", "control groups", "ok" if writable else "degraded", f"version {version}{note}",
                 "" if writable else "run as root, or let systemd delegate a group to this user")  # fmt: skip


def _seccomp(root: Path) -> Check:
    if _read(root / "proc/sys/kernel/seccomp/actions_avail") is None:
        fix = "use a kernel with CONFIG_SECCOMP_FILTER"
        return Check("kernel", "seccomp", "missing", "the kernel offers no filters", fix)
    return Check("kernel", "seccomp", "ok", "filters available")


def _folders() -> Check:
    try:
        place = runtime_folder()
    except LabauditError as error:
        return Check("kernel", "folders", "missing", str(error).splitlines()[0], error.hint)
    cache = cache_folder()
    nearest = next(folder for folder in (cache, *cache.parents) if folder.exists())
    if (cache / "bundled.json").exists() and not os.access(cache, os.W_OK):
        return Check("kernel", "folders", "ok", f"surfaces in {place}, images in {cache} (read only, built already)")
    if not os.access(nearest, os.W_OK):
        return Check("kernel", "folders", "missing", f"{cache} cannot be written", "set LABAUDIT_CACHE_DIR")
    free = shutil.disk_usage(nearest).free
    if free < _ROOM:
        return Check("kernel", "folders", "degraded", f"{free >> 20} MB left at {cache}", "make room for images")
    return Check("kernel", "folders", "ok", f"surfaces in {place}, images in {cache}")


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
