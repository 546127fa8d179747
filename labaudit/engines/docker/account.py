"""The engine's own account of a container, reduced to what confines it. Pure.

Environment values, host paths and names of mounts stay out: the account goes into evidence that may be published.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from labaudit.engines.docker.api import Facts

_HOST = {
    "network_mode": "NetworkMode", "privileged": "Privileged", "read_only_root": "ReadonlyRootfs",
    "cap_drop": "CapDrop", "cap_add": "CapAdd", "memory_bytes": "Memory", "memory_swap_bytes": "MemorySwap",
    "nano_cpus": "NanoCpus", "pids": "PidsLimit", "ipc": "IpcMode", "cgroup_namespace": "CgroupnsMode",
    "user_namespace": "UsernsMode", "pid_mode": "PidMode", "runtime": "Runtime", "devices": "Devices",
}  # fmt: skip


def account(engine: Mapping[str, object], inspected: Facts) -> dict[str, object]:
    """Versions and the options that the engine says are set."""
    host = inspected.get("HostConfig") or {}
    found: dict[str, object] = {name: host.get(key) for name, key in _HOST.items()}
    mode = str(found["network_mode"])
    if mode.startswith("container:"):
        found["network_mode"] = "container:<holder>"
    found["security_options"] = [_option(str(option)) for option in host.get("SecurityOpt") or []]
    found["log_driver"] = (host.get("LogConfig") or {}).get("Type")
    found["image"] = inspected.get("Image")
    found["user"] = (inspected.get("Config") or {}).get("User")
    return {**engine, "container": found}


def _option(option: str) -> str:
    name, _, value = option.partition("=")
    if name == "seccomp" and value not in ("unconfined", "default"):
        return f"seccomp=sha256:{hashlib.sha256(value.encode()).hexdigest()}"
    return option
