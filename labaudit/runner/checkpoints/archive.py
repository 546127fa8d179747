"""Entries of a folder to a tar whose bytes depend on nothing else, and such a tar safely into another folder.

Taking out trusts nothing: names stay below the target, no folder on the way may be a link, links point inside, nothing
but files, folders and links is made, and count and size are bounded.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from labaudit.errors import BadInput
from labaudit.runner.checkpoints.tree import TreeEntry, stays_inside

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
CHUNK = 1 << 20
MAX_MEMBERS = 1_000_000


def write_archive(
    root: Path, entries: Iterable[TreeEntry], sink: BinaryIO, *, clean: Callable[[bytes], bytes] | None = None
) -> None:
    """Writes the entries in the order given. `clean` takes secrets out of a file's content, whole."""
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in entries:
            info = tarfile.TarInfo(os.fsdecode(entry.path))
            if entry.kind == "folder":
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(info)
            elif entry.kind == "link":
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, os.fsdecode(entry.target), 0o777
                archive.addfile(info)
            else:
                info.mode = 0o755 if entry.executable else 0o644
                _add_file(archive, info, root, entry, clean)


def _add_file(
    archive: tarfile.TarFile,
    info: tarfile.TarInfo,
    root: Path,
    entry: TreeEntry,
    clean: Callable[[bytes], bytes] | None,
) -> None:
    descriptor = _open_below(root, entry.path)
    with os.fdopen(descriptor, "rb") as stream:
        if clean is not None:
            data = clean(stream.read())
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
            return
        info.size = os.fstat(descriptor).st_size
        if info.size != entry.size:
            raise BadInput(f"{info.name!r} changed while it was being saved", where=str(root))
        archive.addfile(info, stream)


def _open_below(root: Path, path: bytes) -> int:
    """A file below `root` with every folder on the way opened without following links."""
    *folders, name = path.split(b"/")
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            deeper = os.open(folder, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = deeper
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def extract(
    source: BinaryIO, target: Path, *, max_bytes: int, where: str = "archive", make_parents: bool = False
) -> None:
    """Unpacks into an existing folder; BadInput at the first member that is not what we would have written.

    `make_parents` is for archives that list files alone; their folders are then made on the way.
    """
    room = max_bytes
    try:
        with tarfile.open(fileobj=source, mode="r|") as archive:
            for number, member in enumerate(archive, start=1):
                if number > MAX_MEMBERS:
                    raise BadInput(f"has more than {MAX_MEMBERS} members", where=where)
                room -= member.size if member.isreg() else 0
                if room < 0:
                    raise BadInput(f"unpacks to more than {max_bytes} bytes", where=where)
                if make_parents:
                    _make_parents(target, os.fsencode(member.name).split(b"/")[:-1], where)
                _take(archive, member, target, where)
    except (tarfile.TarError, EOFError, UnicodeError, ValueError) as error:
        raise BadInput(f"is no archive that can be read: {error}", where=where) from error
    except OSError as error:
        raise BadInput(f"cannot be unpacked: {error.strerror or error}", where=where) from error


def _take(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path, where: str) -> None:
    path = os.fsencode(member.name)
    parts = path.split(b"/")
    if any(part in (b"", b".", b"..") for part in parts) or b"\0" in path or len(path) > 4096:
        raise BadInput(f"member {member.name!r} does not stay below its folder", where=where)
    folder = _enter(target, parts[:-1], member.name, where)
    try:
        if member.isdir():
            _make_folder(folder, parts[-1])
        elif member.issym():
            link = os.fsencode(member.linkname)
            if not stays_inside(path, link):
                raise BadInput(f"link {member.name!r} points out of the folder", where=where)
            _remove(folder, parts[-1])
            os.symlink(link, parts[-1], dir_fd=folder)
        elif member.isreg() and member.type in (tarfile.REGTYPE, tarfile.AREGTYPE):
            _write(archive, member, folder, parts[-1], where)
        else:
            raise BadInput(f"member {member.name!r} is no file, folder or link", where=where)
    finally:
        os.close(folder)


def _make_parents(target: Path, parents: list[bytes], where: str) -> None:
    if any(part in (b"", b".", b"..") for part in parents):
        raise BadInput("a member does not stay below its folder", where=where)
    for depth in range(len(parents)):
        folder = _enter(target, parents[:depth], os.fsdecode(b"/".join(parents)), where)
        try:
            _make_folder(folder, parents[depth])
        finally:
            os.close(folder)


def _enter(target: Path, parents: list[bytes], name: str, where: str) -> int:
    descriptor = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for parent in parents:
        try:
            deeper = os.open(parent, _FOLDER, dir_fd=descriptor)
        except OSError as error:
            raise BadInput(f"member {name!r} lies in what is no folder", where=where) from error
        finally:
            os.close(descriptor)
        descriptor = deeper
    return descriptor


def _make_folder(folder: int, name: bytes) -> None:
    try:
        os.mkdir(name, 0o755, dir_fd=folder)
    except FileExistsError:
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            _remove(folder, name)
            os.mkdir(name, 0o755, dir_fd=folder)


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: int, name: bytes, where: str) -> None:
    _remove(folder, name)
    content = archive.extractfile(member)
    if content is None:
        raise BadInput(f"member {member.name!r} has no content", where=where)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o755 if member.mode & 0o111 else 0o644, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as sink:
        left = member.size
        while left and (chunk := content.read(min(CHUNK, left))):
            sink.write(chunk)
            left -= len(chunk)
    if left:
        raise BadInput(f"member {member.name!r} is cut off", where=where)


def _remove(folder: int, name: bytes) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return


def remove_entry(root: Path, path: bytes) -> None:
    """Removes what an earlier checkpoint had and a later one has not."""
    *folders, name = path.split(b"/")
    descriptor = _enter(root, folders, os.fsdecode(path), str(root))
    try:
        if stat.S_ISDIR(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
            os.rmdir(name, dir_fd=descriptor)
        else:
            os.unlink(name, dir_fd=descriptor)
    finally:
        os.close(descriptor)
