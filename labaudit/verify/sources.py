"""A folder to bounded, read-only bytes: no link is followed, nothing but regular files is opened, nothing is written.

A `Source` answers three questions: what stands in a folder, what are the bytes of a file, what is its hash. What goes
wrong is an exception with a reason code, so that "unreadable" is never taken for "changed".
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from labaudit.verify.verdict import Finding

_CHUNK = 1 << 20
_EXEC = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Entry(NamedTuple):
    """One name in a folder; `kind` is file, folder, link or special."""

    name: str
    kind: str


class CannotRead(Exception):
    """A path that gives no bytes, with the finding that says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class Source(Protocol):
    """Where the bytes of a run come from."""

    @property
    def root(self) -> Any:
        """A path-like object for readers that want a RunFolder."""
        ...

    @property
    def odd(self) -> dict[str, Finding]:
        """What was noticed on the way about files that are otherwise fine (an exec bit), by path."""
        ...

    def entries(self, folder: str) -> list[Entry]:
        """The names in a folder, sorted; an absent folder has none."""
        ...

    def open(self, path: str) -> Any:
        """A context manager with a binary stream over a regular file."""
        ...

    def read(self, path: str, limit: int) -> bytes:
        """A small file's bytes; more than `limit` is CannotRead."""
        ...

    def hash(self, path: str, expected: int | None = None) -> tuple[str, int]:
        """Hex digest and size, in flat memory; of a file that has not the expected size only the size."""
        ...

    def size(self, path: str) -> int:
        """The size of a regular file, or CannotRead."""
        ...

    def exists(self, path: str) -> bool:
        """True when there is a regular file."""
        ...


class FolderSource:
    """A folder on disk."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.odd: dict[str, Finding] = {}
        self._base = os.fsencode(root) + b"/"
        self._buffer = bytearray(_CHUNK)

    def entries(self, folder: str) -> list[Entry]:
        """The names in a folder, sorted; a name that is no UTF-8 is shown escaped and noted."""
        try:
            with os.scandir(self._base + folder.encode()) as found:
                return sorted(self._entry(folder, item) for item in found)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise CannotRead(Finding("unreadable", folder, f"the folder cannot be read: {error.strerror}")) from error

    def _entry(self, folder: str, item: os.DirEntry[bytes]) -> Entry:
        try:
            name = item.name.decode("utf-8")
        except UnicodeDecodeError:
            name = item.name.decode("utf-8", "backslashreplace")
            where = f"{folder}/{name}".lstrip("/")
            self.odd[where] = Finding("name_undecodable", where, "the file's name is no UTF-8")
        if item.is_symlink():
            return Entry(name, "link")
        if item.is_dir(follow_symlinks=False):
            return Entry(name, "folder")
        return Entry(name, "file" if item.is_file(follow_symlinks=False) else "special")

    def open_descriptor(self, path: str) -> tuple[int, int]:
        """A descriptor of a regular file and its size."""
        full = self._base + path.encode("utf-8", "surrogatepass")
        try:
            # Looked at before opening: merely opening some devices has an effect.
            found = os.lstat(full)
            if not stat.S_ISREG(found.st_mode):
                raise CannotRead(_not_regular(path, found.st_mode))
            if found.st_mode & _EXEC:
                self.odd[path] = Finding("exec_bit", path, "the file is executable")
            return os.open(full, _OPEN_FLAGS), found.st_size
        except (FileNotFoundError, NotADirectoryError) as error:
            raise CannotRead(Finding("file_missing", path, "the file is not there")) from error
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno == errno.ELOOP:
                raise CannotRead(Finding("link_found", path, "a link stands where a file should be")) from error
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise CannotRead(Finding("unreadable", path, f"the file cannot be read: {reason}")) from error

    @contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        """A buffered stream over a regular file."""
        descriptor, _ = self.open_descriptor(path)
        with os.fdopen(descriptor, "rb", buffering=_CHUNK) as stream:
            try:
                yield stream
            except OSError as error:
                raise CannotRead(Finding("unreadable", path, f"the file cannot be read: {error.strerror}")) from error

    def read(self, path: str, limit: int) -> bytes:
        """A small file's bytes."""
        descriptor, size = self.open_descriptor(path)
        try:
            if size > limit:
                raise CannotRead(too_large(path, size, limit))
            data = os.read(descriptor, size + 1)
            while len(data) < size and (more := os.read(descriptor, size + 1 - len(data))):
                data += more
            return data
        except OSError as error:
            raise CannotRead(Finding("unreadable", path, f"the file cannot be read: {error.strerror}")) from error
        finally:
            os.close(descriptor)

    def size(self, path: str) -> int:
        """The size of a regular file."""
        descriptor, size = self.open_descriptor(path)
        os.close(descriptor)
        return size

    def hash(self, path: str, expected: int | None = None) -> tuple[str, int]:
        """Hex digest and size."""
        descriptor, size = self.open_descriptor(path)
        try:
            if expected is not None and size != expected:
                return "", size
            if size < _CHUNK:
                data = os.read(descriptor, _CHUNK)
                if len(data) == size:
                    return hashlib.sha256(data).hexdigest(), size
                os.lseek(descriptor, 0, os.SEEK_SET)
            hasher, total, view = hashlib.sha256(), 0, memoryview(self._buffer)
            while count := os.readv(descriptor, [self._buffer]):
                hasher.update(view[:count])
                total += count
            return hasher.hexdigest(), total
        except OSError as error:
            raise CannotRead(Finding("unreadable", path, f"the file cannot be read: {error.strerror}")) from error
        finally:
            os.close(descriptor)

    def exists(self, path: str) -> bool:
        """True when there is a regular file."""
        try:
            return stat.S_ISREG(os.lstat(self._base + path.encode()).st_mode)
        except OSError:
            return False


def too_large(path: str, size: int, limit: int) -> Finding:
    """A file beyond what its kind can be."""
    return Finding("too_large", path, f"{size} bytes are more than the {limit} that this file can have")


def _not_regular(path: str, mode: int) -> Finding:
    if stat.S_ISLNK(mode):
        return Finding("link_found", path, "a link stands where a file should be")
    if stat.S_ISDIR(mode):
        return Finding("file_missing", path, "a folder stands where a file should be")
    return Finding("special_file", path, "a FIFO, socket or device stands where a file should be")
