"""Files of a site to a folder that appears whole: written beside its place, hashed on the way, renamed at the end."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import NamedTuple, Self
from uuid import uuid4

from labaudit.core.digest import hash_file
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput, LabauditError
from labaudit.store import atomic

INDEX = "index.json"
INDEX_SCHEMA = "site_index_v1"


class SiteFile(NamedTuple):
    """One file of the site."""

    path: str
    size: int
    sha256: str

    def as_json(self) -> dict[str, object]:
        """The file as `index.json` lists it."""
        return {"path": self.path, "size": self.size, "sha256": self.sha256}


class SiteWriter:
    """Takes files by relative path. Used as a context: the site replaces `out` when the block ends well."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.files: dict[str, SiteFile] = {}
        self._folders: set[Path] = set()
        self._temporary = out.parent / f"{atomic.TEMPORARY_PREFIX}site-{uuid4().hex}"

    def __enter__(self) -> Self:
        refuse_foreign_folder(self.out)
        try:
            self._temporary.mkdir(parents=True)
        except OSError as error:
            raise atomic.explain(error, self._temporary) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._appear()
        else:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def write(self, path: str, data: bytes) -> SiteFile:
        """Adds one file. Not synced: a site is derived, and a crash of the machine costs a rebuild, never evidence."""
        if path in self.files:
            raise BadInput("two pages of the site have the same path", where=path)
        target = self._target(path)
        try:
            target.write_bytes(data)
        except OSError as error:
            raise atomic.explain(error, target) from error
        return self._note(path, len(data), hashlib.sha256(data).hexdigest())

    def copy(self, path: str, source: Path) -> SiteFile:
        """Adds a copy of a file, hashed as it is copied, in flat memory."""
        target, hasher, total = self._target(path), hashlib.sha256(), 0
        try:
            with source.open("rb") as stream, target.open("xb") as copy:
                while block := stream.read(1 << 20):
                    hasher.update(block)
                    copy.write(block)
                    total += len(block)
        except OSError as error:
            raise atomic.explain(error, source) from error
        return self._note(path, total, hasher.hexdigest())

    def adopt(self, path: str) -> SiteFile:
        """Notes a file that another writer put at `temporary(path)`."""
        sha256, size = hash_file(self._target(path))
        return self._note(path, size, sha256)

    def temporary(self, path: str) -> Path:
        """Where a file is written that is not part of the index (signature, log)."""
        return self._target(path)

    def _note(self, path: str, size: int, sha256: str) -> SiteFile:
        self.files[path] = SiteFile(path, size, sha256)
        return self.files[path]

    def _target(self, path: str) -> Path:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or not pure.parts:
            raise BadInput("a page's path leaves the site", where=path)
        target = self._temporary.joinpath(*pure.parts)
        if target.parent not in self._folders:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._folders.add(target.parent)
        return target

    def _appear(self) -> None:
        old = self.out.parent / f"{atomic.TEMPORARY_PREFIX}old-{uuid4().hex}"
        try:
            had = self.out.exists()
            if had:
                self.out.rename(old)
            try:
                self._temporary.rename(self.out)
            except OSError:
                if had:
                    old.rename(self.out)
                raise
            atomic.sync_folder(self.out.parent)
        except OSError as error:
            shutil.rmtree(self._temporary, ignore_errors=True)
            raise atomic.explain(error, self.out) from error
        shutil.rmtree(old, ignore_errors=True)


def refuse_foreign_folder(out: Path) -> None:
    """Only a site, an empty folder or nothing may be replaced."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise BadInput("is no folder", where=str(out), hint="choose another --out")
    if not out.is_dir() or not any(out.iterdir()):
        return
    try:
        known = parse_object(atomic.read_bytes(out / INDEX), where=str(out / INDEX))
    except LabauditError as error:
        raise BadInput(
            "holds something else than a site", where=str(out), hint="choose another --out, or empty it"
        ) from error
    if known.get("schema_version") != INDEX_SCHEMA:
        raise BadInput("holds something else than a site", where=str(out), hint="choose another --out, or empty it")
