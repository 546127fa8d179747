"""The files that an import reads: bounded, regular files only, each hashed once and kept for the run's artifacts.

A file is named relative to the path that the user gave, with that path's own name in front, so that no record holds a
place on somebody's machine.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labaudit.core.digest import sha256_hex
from labaudit.errors import BadInput
from labaudit.importers.foreign_json import read_foreign_json

MAX_FILE = 256 << 20
MAX_FILES = 200_000
_TYPES = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".csv": "text/csv",
    ".txt": "text/plain",
    ".lock": "application/json",
    ".eval": "application/zip",
    ".parquet": "application/vnd.apache.parquet",
}


@dataclass(frozen=True)
class SourceFile:
    """One file that was read."""

    name: str
    path: Path
    size: int
    sha256: str

    @property
    def content_type(self) -> str:
        """By its suffix; bytes otherwise."""
        return _TYPES.get(self.path.suffix.lower(), "application/octet-stream")


class SourceFiles:
    """Reads files below the given paths and remembers each."""

    def __init__(self, *, max_file: int = MAX_FILE, max_files: int = MAX_FILES) -> None:
        self._max_file = max_file
        self._max_files = max_files
        self._read: dict[str, SourceFile] = {}
        self._labels: dict[Path, str] = {}

    def label(self, root: Path) -> str:
        """The name of a path that the user gave; of two with one name, the second gets a number."""
        place = root.resolve()
        if place not in self._labels:
            name, number = place.name or "root", 2
            while name in self._labels.values():
                name, number = f"{place.stem}-{number}{place.suffix}", number + 1
            self._labels[place] = name
        return self._labels[place]

    @property
    def roots(self) -> list[tuple[Path, str]]:
        """The paths that were given, with their labels, in the order in which they were first looked at."""
        return list(self._labels.items())

    def bytes(self, path: Path, name: str) -> bytes:
        """The content of a regular file; BadInput when it is none, too large, or unreadable."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError as error:
            raise BadInput(f"cannot be read: {error.strerror or error}", where=name) from error
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            os.close(descriptor)
            raise BadInput("is no regular file", where=name)
        with os.fdopen(descriptor, "rb") as stream:
            if info.st_size > self._max_file:
                raise BadInput(f"has {info.st_size} bytes, more than the {self._max_file} allowed", where=name)
            data = stream.read(self._max_file + 1)
        if len(data) > self._max_file:
            raise BadInput(f"grew past the {self._max_file} bytes allowed", where=name)
        self._read[name] = SourceFile(name, path, len(data), sha256_hex(data))
        return data

    def json(self, path: Path, name: str) -> Any:
        """The JSON value of a file."""
        return read_foreign_json(self.bytes(path, name), name)

    def below(self, folder: Path) -> Iterator[tuple[Path, str]]:
        """Every regular file at or below a folder (links are not followed), with its name, sorted."""
        if not folder.is_dir():
            raise BadInput("is no folder", where=str(folder), hint="give the folder that holds the results")
        label = self.label(folder)
        count = 0
        for place, folders, files in os.walk(folder, onerror=_unlisted):
            folders.sort()
            for file in sorted(files):
                path = Path(place) / file
                if path.is_symlink():
                    continue
                count += 1
                if count > self._max_files:
                    raise BadInput(f"has more than {self._max_files} files", where=str(folder))
                yield path, f"{label}/{path.relative_to(folder).as_posix()}"

    def sha256(self, name: str) -> str:
        """The digest of a file that was read."""
        return self._read[name].sha256

    @property
    def read(self) -> list[SourceFile]:
        """All files that were read, by name."""
        return [self._read[name] for name in sorted(self._read)]


def _unlisted(error: OSError) -> None:
    """A folder that cannot be listed may hold anything: leaving it out in silence would be an answer."""
    raise BadInput(f"cannot be listed: {error.strerror or error}", where=str(error.filename))


def folder_above(path: Path, name: str, levels: int) -> str:
    """The folder so many levels above a file: by the file's name below what was given, else by where it lies."""
    parts = name.split("/")
    return parts[-1 - levels] if len(parts) > levels else path.resolve().parents[levels - 1].name or "submission"
