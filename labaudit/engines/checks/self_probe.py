"""Runs inside a sandbox and tries what a trial must not be able to do. A script; prints one JSON object.

Every try is harmless where it succeeds: it opens and closes, or touches a file of its own. Standard library only.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import socket
from collections.abc import Callable

# name: (number on x86_64, number on aarch64, arguments)
CALLS: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "unshare": (272, 97, (0x40000000,)),
    "setns": (308, 268, (-1, 0)),
    "mount": (165, 40, (0, 0, 0, 0, 0)),
    # of a process that does not exist: to attach to a real one would stop it
    "ptrace": (101, 117, (16, 0x3FFFFFFF, 0, 0)),
    "io_uring_setup": (425, 425, (1, 0)),
    "bpf": (321, 280, (0, 0, 0)),
    "perf_event_open": (298, 241, (0, 0, -1, -1, 0)),
    "keyctl": (250, 219, (0, 0, 0, 0, 0)),
    "open_by_handle_at": (304, 265, (-1, 0, 0)),
    "process_vm_readv": (310, 270, (1, 0, 0, 0, 0, 0)),
}
FAMILIES = {"vsock": 40, "packet": 17, "alg": 38, "bluetooth": 31, "xdp": 44}
WRITES = ("/", "/in", "/etc", "/usr", "/proc/sys/kernel", "/sys", "/dev")
SURFACES = ("/out", "/workspace", "/state", "/tmp")  # noqa: S108, the sandbox's own
SOCKETS = ("/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock")


def call(name: str) -> str:
    """The errno's name, or `allowed`."""
    on_x86, on_arm, arguments = CALLS[name]
    number = on_x86 if platform.machine() == "x86_64" else on_arm
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(word) for word in arguments))
    if result >= 0:
        return "allowed"
    return errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


def tried(action: Callable[[], object]) -> str:
    try:
        action()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error.errno))
    return "allowed"


def touch(folder: str) -> str:
    def action() -> None:
        path = f"{folder.rstrip('/')}/.labaudit-probe"
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(path)  # noqa: PTH108

    return tried(action)


def main() -> None:
    told = {
        "calls": {name: call(name) for name in CALLS},
        "families": {
            name: tried(lambda number=number: socket.socket(number, socket.SOCK_STREAM).close())  # type: ignore[misc]
            for name, number in FAMILIES.items()
        },
        "raw": tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close()),
        "writes": {folder: touch(folder) for folder in WRITES},
        "surfaces": {folder: touch(folder) for folder in SURFACES},
        "engine_sockets": [path for path in SOCKETS if os.path.exists(path)],  # noqa: PTH110
        "uid": os.getuid(),
        "interfaces": sorted(name for _, name in socket.if_nameindex()),
    }
    print(json.dumps(told))  # noqa: T201


if __name__ == "__main__":
    main()
