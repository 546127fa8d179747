"""A folder to its entries, sorted, each with kind, exec bit, size and digest; links are never followed.

Every file is read each time. Times would be cheaper and cannot be trusted: a file that a program writes through a
memory mapping keeps its change time on a tmpfs, which is what the surfaces are.
"""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from labaudit.core.canonical import canonical_bytes
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput

SCHEMA = "tree_manifest_v1"
MAX_DEPTH = 64
# Holes take no room, so no quota bounds them: one call makes a file that nobody reads to its end in a lifetime.
MAX_HOLES = 64 << 20
_SLACK = 4096


@dataclass(frozen=True, order=True)
class TreeEntry:
    """One file, folder or link; `target` is a link's text."""

    path: bytes
    kind: str
    executable: bool = False
    size: int = 0
    sha256: str = ""
    target: bytes = b""

    def as_json(self) -> dict[str, object]:
        """The entry in a manifest; a name that is no UTF-8 is kept in base64."""
        value: dict[str, object] = {**_text("path", self.path), "kind": self.kind}
        if self.kind == "file":
            value.update(size=self.size, sha256=self.sha256, executable=self.executable)
        elif self.kind == "link":
            value.update(_text("target", self.target))
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, object], where: str = "") -> TreeEntry:
        """An entry read back; BadInput for anything that is none."""
        path, kind = _bytes(value, "path", where), value.get("kind")
        if kind == "folder":
            return cls(path, "folder")
        if kind == "link":
            return cls(path, "link", target=_bytes(value, "target", where))
        size, digest = value.get("size"), value.get("sha256")
        if kind != "file" or not isinstance(size, int) or not isinstance(digest, str):
            raise BadInput("holds what is no entry of a tree", where=where)
        return cls(path, "file", value.get("executable") is True, size, digest)


@dataclass(frozen=True)
class Tree:
    """The entries of a folder, and what was left out and why."""

    entries: tuple[TreeEntry, ...]
    left_out: tuple[str, ...] = ()

    @property
    def files(self) -> int:
        """How many files there are."""
        return sum(1 for entry in self.entries if entry.kind == "file")

    @property
    def size(self) -> int:
        """What they hold together."""
        return sum(entry.size for entry in self.entries)

    def manifest(self) -> bytes:
        """The tree as a document; equal trees have equal bytes."""
        return canonical_bytes({"schema_version": SCHEMA, "entries": [entry.as_json() for entry in self.entries]})


def read_manifest(data: bytes, where: str = "tree manifest") -> tuple[TreeEntry, ...]:
    """The entries of a manifest."""
    value = parse_object(data, where=where)
    entries = value.get("entries")
    if value.get("schema_version") != SCHEMA or not isinstance(entries, list):
        raise BadInput("is no tree manifest", where=where)
    return tuple(TreeEntry.from_json(entry if isinstance(entry, dict) else {}, where) for entry in entries)


def list_tree(root: Path, *, skip: frozenset[bytes] = frozenset()) -> Tree:
    """Everything below `root` but the paths in `skip`; what its owner has made unreadable is left out, and listed."""
    listing = _Listing(skip)
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        return Tree((), (f".: cannot be read: {error.strerror}",))
    try:
        listing.folder(descriptor, b"", 0)
    finally:
        os.close(descriptor)
    return Tree(tuple(sorted(listing.entries)), tuple(sorted(listing.left_out)))


class _Listing:
    def __init__(self, skip: frozenset[bytes]) -> None:
        self._skip = skip
        self._holes = 0
        self.entries: list[TreeEntry] = []
        self.left_out: list[str] = []

    def folder(self, descriptor: int, prefix: bytes, depth: int) -> None:
        """Lists one open folder; names are opened relative to it, so nothing can be swapped under way."""
        for name in sorted(os.fsencode(name) for name in os.listdir(descriptor)):
            path = prefix + name
            if path in self._skip:
                continue
            try:
                self._entry(descriptor, name, path, depth)
            except OSError as error:
                # A harness that runs as the runner's own user can take it the right to read: no reason to lose a trial.
                self.left_out.append(f"{_shown(path)}: cannot be read: {error.strerror}")

    def _entry(self, descriptor: int, name: bytes, path: bytes, depth: int) -> None:
        found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            self._enter(descriptor, name, path, depth)
        elif stat.S_ISLNK(found.st_mode):
            self._link(path, os.fsencode(os.readlink(name, dir_fd=descriptor)))
        elif stat.S_ISREG(found.st_mode):
            self._file(descriptor, name, path, found)
        else:
            self.left_out.append(f"{_shown(path)}: no file, folder or link")

    def _enter(self, descriptor: int, name: bytes, path: bytes, depth: int) -> None:
        if depth >= MAX_DEPTH:
            self.left_out.append(f"{_shown(path)}: more than {MAX_DEPTH} folders deep")
            return
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
        self.entries.append(TreeEntry(path, "folder"))
        try:
            self.folder(inner, path + b"/", depth + 1)
        finally:
            os.close(inner)

    def _link(self, path: bytes, target: bytes) -> None:
        if stays_inside(path, target):
            self.entries.append(TreeEntry(path, "link", target=target))
        else:
            self.left_out.append(f"{_shown(path)}: a link out of the folder")

    def _file(self, descriptor: int, name: bytes, path: bytes, found: os.stat_result) -> None:
        holes = found.st_size - found.st_blocks * 512
        if holes > _SLACK:
            if self._holes + holes > MAX_HOLES:
                self.left_out.append(f"{_shown(path)}: a sparse file with more holes than are read")
                return
            self._holes += holes
        digest, size = _hash(descriptor, name)
        self.entries.append(TreeEntry(path, "file", bool(found.st_mode & 0o111), size, digest))


def stays_inside(path: bytes, target: bytes) -> bool:
    """Whether a link at `path` with this text points to something below the same root."""
    if target.startswith(b"/") or b"\0" in target or not target:
        return False
    depth = path.count(b"/")
    for part in target.split(b"/"):
        if part == b"..":
            depth -= 1
        elif part not in (b"", b"."):
            depth += 1
        if depth < 0:
            return False
    return True


def _hash(descriptor: int, name: bytes) -> tuple[str, int]:
    """Digest and size of a regular file of an open folder."""
    inner = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=descriptor)
    with os.fdopen(inner, "rb", buffering=0) as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return digest, stream.tell()


def _text(key: str, value: bytes) -> dict[str, object]:
    try:
        return {key: value.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{key}_base64": base64.b64encode(value).decode("ascii")}


def _bytes(value: Mapping[str, object], key: str, where: str) -> bytes:
    text, encoded = value.get(key), value.get(f"{key}_base64")
    if isinstance(text, str):
        return text.encode("utf-8")
    try:
        return base64.b64decode(str(encoded), validate=True)
    except ValueError as error:
        raise BadInput(f"an entry has no {key}", where=where) from error


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")
