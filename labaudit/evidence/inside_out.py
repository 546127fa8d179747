"""A path that a harness names to an open file that really lies inside its out folder.

The folder belongs to the harness, also while it runs, so nothing in it is trusted: every component is opened without
following links, and what is no regular file (a FIFO would block the reader for ever) is refused.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from labaudit.errors import BadInput

CONTAINER_OUT = "/out"
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def relative_inside(declared: str, *, inside_out: str = CONTAINER_OUT, where: str = "") -> str:
    """`declared` relative to the out folder: `/out/a.jsonl`, the harness's own out path or `a.jsonl` all mean a.jsonl.

    A path that leaves the folder is BadInput.
    """
    for root in (inside_out.rstrip("/"), CONTAINER_OUT):
        if root and declared.startswith(root + "/"):
            declared = declared[len(root) + 1 :]
            break
    parts = PurePosixPath(declared).parts
    if not parts or declared.startswith("/") or ".." in parts or "\0" in declared:
        raise BadInput(f"{declared[:200]!r} is no file inside {CONTAINER_OUT}", where=where)
    return "/".join(parts)


def open_regular(root: Path, relative: str) -> BinaryIO | None:
    """The regular file `relative` below `root`, opened for reading; None when it is not there, BadInput when it is odd.

    `relative` comes from `relative_inside`.
    """
    *folders, name = PurePosixPath(relative).parts
    try:
        found = _walk(root, folders, name)
    except FileNotFoundError:
        return None
    except OSError as error:
        # ELOOP is what O_NOFOLLOW gives for a link, ENOTDIR for a file in the middle of the path.
        raise BadInput(f"cannot be opened as a plain file: {error.strerror}", where=relative) from error
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise BadInput("is no regular file", where=relative)
    return os.fdopen(found, "rb")


def _walk(root: Path, folders: list[str], name: str) -> int:
    descriptor = os.open(root, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        for folder in folders:
            deeper = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = deeper
        return os.open(name, _FLAGS, dir_fd=descriptor)
    finally:
        os.close(descriptor)
