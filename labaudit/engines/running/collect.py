"""Safe collection of a surface after the sandbox has stopped: regular files only, no link ever followed.

Everything is opened relative to an already opened folder, with O_NOFOLLOW, and checked on the open descriptor; so a
name that changes its meaning between look and open cannot lead outside. What is refused is recorded with a reason.
"""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from labaudit.engines.result import CollectedFile, Collection, RefusedEntry

MAX_DEPTH = 16
MAX_NAME = 255
MAX_FILES = 16384
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a FIFO that takes a file's place must not make the open wait for a writer
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KINDS = {stat.S_IFLNK: "symlink", stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device",
          stat.S_IFBLK: "device"}  # fmt: skip

Kind = Literal["symlink", "fifo", "socket", "device"]


@dataclass
class _Walk:
    target: Path
    max_bytes: int
    files: list[CollectedFile] = field(default_factory=list)
    refused: list[RefusedEntry] = field(default_factory=list)
    taken: int = 0


def collect(source: Path, target: Path, *, max_bytes: int) -> Collection:
    """Copies the regular files below `source` to `target` (made if needed); files get mode 0644."""
    target.mkdir(parents=True, exist_ok=True)
    walk = _Walk(target, max_bytes)
    try:
        folder = os.open(source, _FOLDER)
    except OSError as error:
        # A harness with the runner's own user can shut its folder; that is its result, and no fault of the machine.
        return Collection(refused=(RefusedEntry(".", "unreadable", error.strerror or "cannot be read"),))
    try:
        _folder(walk, folder, ())
    finally:
        os.close(folder)
    return Collection(
        tuple(sorted(walk.files, key=lambda file: file.path)), tuple(sorted(walk.refused, key=lambda entry: entry.path))
    )


def _folder(walk: _Walk, folder: int, parts: tuple[str, ...]) -> None:
    for name in sorted(os.listdir(folder)):
        here = (*parts, name)
        if len(walk.files) + len(walk.refused) >= MAX_FILES:
            walk.refused.append(RefusedEntry(shown(here), "too_many", f"more than {MAX_FILES} entries"))
            return
        if reason := _bad_name(name):
            walk.refused.append(RefusedEntry(shown(here), "bad_name", reason))
        elif len(here) > MAX_DEPTH:
            walk.refused.append(RefusedEntry(shown(here), "too_deep", f"more than {MAX_DEPTH} levels down"))
            return
        else:
            _entry(walk, folder, name, here)


def _entry(walk: _Walk, folder: int, name: str, here: tuple[str, ...]) -> None:
    try:
        facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(facts.st_mode):
            inner = os.open(name, _FOLDER, dir_fd=folder)
            try:
                _folder(walk, inner, here)
            finally:
                os.close(inner)
        elif stat.S_ISREG(facts.st_mode):
            _regular(walk, folder, name, here)
        else:
            kind = _KINDS.get(stat.S_IFMT(facts.st_mode), "device")
            walk.refused.append(RefusedEntry(shown(here), kind, "only regular files are taken"))  # type: ignore[arg-type]
    except OSError as error:
        walk.refused.append(RefusedEntry(shown(here), "unreadable", error.strerror or "cannot be read"))


def _regular(walk: _Walk, folder: int, name: str, here: tuple[str, ...]) -> None:
    source = os.open(name, _FILE, dir_fd=folder)
    try:
        facts = os.fstat(source)
        if refusal := _refusal(walk, facts, here):
            walk.refused.append(refusal)
            return
        walk.files.append(_copy(walk, source, facts.st_size, here))
        walk.taken += facts.st_size
    finally:
        os.close(source)


def _refusal(walk: _Walk, facts: os.stat_result, here: tuple[str, ...]) -> RefusedEntry | None:
    path = shown(here)
    if not stat.S_ISREG(facts.st_mode):
        return RefusedEntry(path, "changed", "it became something else while it was opened")
    if facts.st_mode & (stat.S_ISUID | stat.S_ISGID):
        return RefusedEntry(path, "setuid", f"mode {stat.S_IMODE(facts.st_mode):04o} has a set-id bit")
    if facts.st_nlink > 1:
        return RefusedEntry(path, "hardlink", f"{facts.st_nlink} names for one file")
    # 4 KB of slack: file systems round up, and small files may live in their inode
    if facts.st_size > facts.st_blocks * 512 + 4096:
        return RefusedEntry(path, "sparse", f"{facts.st_size} bytes with {facts.st_blocks * 512} on disk")
    if walk.taken + facts.st_size > walk.max_bytes:
        return RefusedEntry(path, "too_large", f"more than {walk.max_bytes} bytes in all")
    return None


def _copy(walk: _Walk, source: int, size: int, here: tuple[str, ...]) -> CollectedFile:
    """Copies exactly `size` bytes; the sandbox has stopped, so a file that is shorter now is an error."""
    path = walk.target.joinpath(*here)
    path.parent.mkdir(parents=True, exist_ok=True)
    digest, left = hashlib.sha256(), size
    try:
        with path.open("xb") as sink:
            while left and (chunk := os.read(source, min(left, 1 << 20))):
                digest.update(chunk)
                sink.write(chunk)
                left -= len(chunk)
        if left:
            raise OSError(0, "it became shorter while it was read")
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise
    path.chmod(0o644)
    return CollectedFile("/".join(here), size, digest.hexdigest())


def _bad_name(name: str) -> str:
    if len(os.fsencode(name)) > MAX_NAME:
        return "longer than 255 bytes"
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return "not UTF-8"
    if not name.isprintable():
        return "control or unprintable characters"
    if name != name.strip():
        return "leading or trailing space"
    if "\\" in name:
        return "a backslash"
    return ""


def shown(parts: tuple[str, ...]) -> str:
    """A path that can be printed and stored whatever bytes its names hold."""
    return "/".join(part if part.isprintable() else _escaped(part) for part in parts)


def _escaped(part: str) -> str:
    return os.fsencode(part).decode("utf-8", "backslashreplace").encode("unicode_escape").decode()
