"""An image, as a folder, a tar of its root, or a docker-save archive, to one view: path -> bytes of small files.

Only files that package readers ask for are read, each bounded; links are not followed, so an image cannot make us read
the host.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from labaudit.errors import BadInput

Wanted = Callable[[str], bool]
MAX_FILE = 64 * 1024 * 1024
_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"


def read_wanted(source: Path | BinaryIO, wanted: Wanted) -> dict[str, bytes]:
    """The wanted files of an image by their path without a leading slash."""
    if isinstance(source, Path) and source.is_dir():
        return dict(_from_folder(source, wanted))
    try:
        if isinstance(source, Path):
            with source.open("rb") as stream:
                return _from_archive(stream, wanted)
        return _from_archive(source, wanted)
    except (tarfile.TarError, EOFError) as error:
        raise BadInput(f"is no tar archive: {error}", where=str(source)) from error
    except OSError as error:
        raise BadInput(f"cannot be read: {error}", where=str(source)) from error


def _from_folder(root: Path, wanted: Wanted) -> Iterator[tuple[str, bytes]]:
    for folder, names, files in os.walk(root):
        names.sort()
        for name in sorted(files):
            path = Path(folder) / name
            relative = path.relative_to(root).as_posix()
            if wanted(relative) and path.is_file() and not path.is_symlink() and path.stat().st_size <= MAX_FILE:
                yield relative, path.read_bytes()


def _from_archive(stream: BinaryIO, wanted: Wanted) -> dict[str, bytes]:
    """A tar of a root file system, or the layers of a docker-save or OCI archive laid over each other."""
    if not stream.seekable():
        with tarfile.open(fileobj=stream, mode="r|*") as archive:
            return _layer(archive, wanted, {})
    with tarfile.open(fileobj=stream, mode="r:*") as archive:
        if "manifest.json" not in archive.getnames():
            return _layer(archive, wanted, {})
        found: dict[str, bytes] = {}
        for layer in _layers(archive):
            member = archive.extractfile(layer)
            if member is None:
                raise BadInput(f"layer {layer} is no file of the archive")
            with tarfile.open(fileobj=member, mode="r:*") as inner:
                found = _layer(inner, wanted, found)
        return found


def _layers(archive: tarfile.TarFile) -> list[str]:
    member = archive.extractfile("manifest.json")
    try:
        manifest = json.loads(member.read(MAX_FILE)) if member else None
        return [str(layer) for layer in manifest[0]["Layers"]]  # type: ignore[index]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise BadInput("its manifest.json lists no layers", hint="expected what `docker save` writes") from error


def _layer(archive: tarfile.TarFile, wanted: Wanted, below: dict[str, bytes]) -> dict[str, bytes]:
    found = dict(below)
    for member in archive:
        path = member.name.removeprefix("./").strip("/")
        folder, _, name = path.rpartition("/")
        if name == _OPAQUE:
            found = {key: data for key, data in found.items() if not key.startswith(f"{folder}/")}
        elif name.startswith(_WHITEOUT):
            gone = f"{folder}/{name[len(_WHITEOUT) :]}".lstrip("/")
            found = {key: data for key, data in found.items() if key != gone and not key.startswith(f"{gone}/")}
        elif wanted(path):
            found.pop(path, None)
            content = archive.extractfile(member) if member.isreg() and member.size <= MAX_FILE else None
            if content is not None:
                found[path] = content.read()
    return found
