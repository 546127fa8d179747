"""Bytes to files that are either wholly there or not there at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from labaudit.core.canonical import canonical_bytes
from labaudit.errors import BadInput, EnvironmentLacks, LabauditError

TEMPORARY_PREFIX = ".tmp-"

_OF_THE_MACHINE = (errno.EIO, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE)


def write_bytes(path: Path, data: bytes, *, mode: int = 0o644, durable: bool = True) -> None:
    """`path` holds exactly `data` afterwards, or is as it was."""
    with replacing(path, mode=mode, durable=durable) as stream:
        stream.write(data)


def write_json(path: Path, value: object, *, durable: bool = True) -> bytes:
    """`path` holds the canonical JSON of `value`; the bytes are returned for hashing."""
    data = canonical_bytes(value)
    write_bytes(path, data, durable=durable)
    return data


def write_lines(path: Path, values: Iterator[object] | list[object], *, durable: bool = True) -> None:
    """`path` holds one canonical JSON line per value."""
    with replacing(path, durable=durable) as stream:
        for value in values:
            stream.write(canonical_bytes(value) + b"\n")


def remove_leftovers(folder: Path) -> None:
    """Clears away what a killed writer left half-written in a folder that nobody writes to now."""
    for leftover in list(folder.rglob(f"{TEMPORARY_PREFIX}*")):
        leftover.unlink()


@contextmanager
def replacing(path: Path, *, mode: int = 0o644, durable: bool = True) -> Iterator[BinaryIO]:
    """A stream whose content takes the place of `path` when the block ends well, and vanishes when it does not."""
    temporary = path.parent / f"{TEMPORARY_PREFIX}{uuid4().hex}"
    try:
        descriptor = _create(temporary, mode)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                yield stream
                stream.flush()
                if durable:
                    os.fsync(stream.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if durable:
            sync_folder(path.parent)
    except OSError as error:
        raise explain(error, path) from error


def _create(path: Path, mode: int) -> int:
    """A new file's descriptor; the folder is made only when it turns out to be missing, as it seldom is."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(path, flags, mode)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, flags, mode)


def write_first(path: Path, data: bytes, *, durable: bool = True) -> bool:
    """`path` holds `data` unless it was there already; of two writers at once one wins, the other changes nothing."""
    temporary = path.parent / f"{TEMPORARY_PREFIX}{uuid4().hex}"
    try:
        try:
            with os.fdopen(_create(temporary, 0o644), "wb") as stream:
                stream.write(data)
                stream.flush()
                if durable:
                    os.fsync(stream.fileno())
            os.link(temporary, path)
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
        if durable:
            sync_folder(path.parent)
    except OSError as error:
        raise explain(error, path) from error
    return True


def append_line(path: Path, value: object) -> None:
    """One canonical JSON line at the end of a shared file; a single write, so concurrent lines do not mix."""
    line = canonical_bytes(value) + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            _write_whole(descriptor, line)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise explain(error, path) from error


def _write_whole(descriptor: int, line: bytes) -> None:
    """One write; on a disk that has room for a part of it, that part is taken back."""
    written = os.write(descriptor, line)
    if written == len(line):
        return
    end = os.lseek(descriptor, 0, os.SEEK_CUR)
    if os.fstat(descriptor).st_size == end:
        os.ftruncate(descriptor, end - written)
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def sync_folder(folder: Path) -> None:
    """Makes the names in `folder` durable."""
    _sync(folder, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise explain(error, path) from error


def explain(error: OSError, path: Path) -> LabauditError:
    """An operating system error in the words of this program."""
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return EnvironmentLacks("no space is left on the disk", where=str(path), hint="free some space and go on")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return EnvironmentLacks(f"cannot be used: {reason}", where=str(path), hint="check owner and permissions")
    kind = EnvironmentLacks if error.errno in _OF_THE_MACHINE else BadInput
    return kind(f"cannot be used: {reason}", where=str(path))


def read_bytes(path: Path, *, max_bytes: int | None = None) -> bytes:
    """The content of a regular file, or a clear error."""
    try:
        if path.is_dir():
            raise BadInput("is a directory, a file is needed", where=str(path))
        if max_bytes is not None and path.stat().st_size > max_bytes:
            raise BadInput(f"is larger than {max_bytes} bytes", where=str(path))
        return path.read_bytes()
    except FileNotFoundError as error:
        raise BadInput("there is no such file", where=str(path)) from error
    except OSError as error:
        raise explain(error, path) from error
