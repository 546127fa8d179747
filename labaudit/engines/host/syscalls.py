"""The few Linux calls that Python 3.11 does not offer: mount, umount, setns, unshare, prctl.

Thin on purpose: each raises OSError with the errno, and nothing here decides anything.
"""

from __future__ import annotations

import ctypes
import os

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MNT_DETACH = 2
CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWUSER = 0x00020000, 0x40000000, 0x10000000

_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    """mount(2)."""
    result = _libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode())
    _checked(result, target)


def unmount(target: str) -> None:
    """umount2(2), lazily: what still has a file open does not keep the mount point busy."""
    _checked(_libc.umount2(target.encode(), MNT_DETACH), target)


def _checked(result: int, about: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), about)
