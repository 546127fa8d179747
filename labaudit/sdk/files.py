"""Bytes to files that appear whole or not at all, and the time as text."""

from __future__ import annotations

import os
import time
from pathlib import Path


def write_whole(path: str, data: bytes) -> None:
    """`path` holds exactly `data` afterwards: temporary file, fsync, rename."""
    target = Path(path)
    temporary = target.parent / f"{target.name}.tmp-{os.getpid()}-{time.monotonic_ns()}"
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException:
        if temporary.exists():
            temporary.unlink()
        raise


def timestamp() -> str:
    """Now, as RFC 3339 in UTC with microseconds."""
    now = time.time_ns()
    seconds, nanoseconds = divmod(now, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{nanoseconds // 1000:06d}Z"
