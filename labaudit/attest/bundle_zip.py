"""A run folder to one zip with the same bytes on every machine, which `labaudit verify` takes as it is.

Members stand sorted under `<run_id>/`, stored without compression (two versions of zlib give two results), with one
date and one mode. Who wants it smaller compresses the zip.
"""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from labaudit.core.digest import CHUNK
from labaudit.core.ids import safe_name
from labaudit.errors import BadInput
from labaudit.store import atomic

_DATE = (1980, 1, 1, 0, 0, 0)
_MODE = stat.S_IFREG | 0o644
_MADE_ON_UNIX = 3


def write_bundle(folder: Path, name: str, target: Path) -> int:
    """Writes the zip of every file below `folder` to `target` and gives the number of files."""
    files = list(_files(folder))
    if not files:
        raise BadInput("holds no files", where=str(folder))
    with atomic.replacing(target) as stream:
        _write(stream, folder, safe_name(name), files)
    return len(files)


def _write(stream: BinaryIO, folder: Path, name: str, files: list[str]) -> None:
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for path in files:
            info = zipfile.ZipInfo(f"{name}/{path}", date_time=_DATE)
            info.create_system = _MADE_ON_UNIX
            info.external_attr = _MODE << 16
            info.file_size = (folder / path).stat().st_size
            try:
                with (folder / path).open("rb") as source, archive.open(info, "w") as member:
                    while chunk := source.read(CHUNK):
                        member.write(chunk)
            except OSError as error:
                raise atomic.explain(error, folder / path) from error


def _files(folder: Path) -> Iterator[str]:
    """Every regular file by its path, sorted as text; anything else is refused, because a zip would hide it."""
    found: list[str] = []
    waiting = [""]
    while waiting:
        current = waiting.pop()
        with os.scandir(folder / current) as entries:
            for entry in entries:
                path = f"{current}/{entry.name}".lstrip("/")
                if entry.name.startswith(atomic.TEMPORARY_PREFIX):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                elif entry.is_file(follow_symlinks=False):
                    found.append(path)
                else:
                    hint = "see: labaudit verify RUN"
                    raise BadInput("is a link or a special file", where=str(folder / path), hint=hint)
    yield from sorted(found)
