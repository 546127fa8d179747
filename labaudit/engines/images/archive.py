"""A docker-save archive from a file tree and back, with fixed dates, owners and order.

The image id is the digest of the config, which names the digest of the layer; both depend only on the tree's names,
modes and bytes. So the same tree has the same id on every machine (`docker import` would add the current time).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

from labaudit.core.canonical import canonical_bytes
from labaudit.errors import BadInput

EPOCH = "1970-01-01T00:00:00Z"
MAX_METADATA = 8 << 20


@dataclass(frozen=True)
class ArchiveImage:
    """What an archive's own files say about one image."""

    id: str
    tags: tuple[str, ...]
    layers: tuple[str, ...]
    config: dict[str, object]

    @property
    def env(self) -> dict[str, str]:
        inner = self.config.get("config")
        pairs = cast("dict[str, object]", inner).get("Env") if isinstance(inner, dict) else None
        entries = [str(pair) for pair in pairs] if isinstance(pairs, list) else []
        return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def write_archive(
    tree: Path, target: Path, *, tag: str, env: Mapping[str, str], labels: Mapping[str, str], machine: str
) -> str:
    """Writes `tree` as a one-layer docker-save archive and returns the image id."""
    layer_path = target.with_suffix(".layer")
    with layer_path.open("wb") as raw:
        diff_hex = _write_layer(tree, raw)
    config = canonical_bytes(
        {
            "architecture": machine,
            "config": {
                "Cmd": ["python3"],
                "Env": [f"{name}={value}" for name, value in sorted(env.items())],
                "Labels": dict(labels),
                "WorkingDir": "/",
            },
            "created": EPOCH,
            "history": [{"created": EPOCH, "created_by": "labaudit bundled image"}],
            "os": "linux",
            "rootfs": {"diff_ids": [f"sha256:{diff_hex}"], "type": "layers"},
        }
    )
    config_hex = hashlib.sha256(config).hexdigest()
    layer_name = f"{diff_hex}/layer.tar"
    manifest = canonical_bytes([{"Config": f"{config_hex}.json", "Layers": [layer_name], "RepoTags": [tag]}])
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive:
        _add_bytes(archive, "manifest.json", manifest)
        _add_bytes(archive, f"{config_hex}.json", config)
        entry = _fixed(tarfile.TarInfo(layer_name))
        entry.size, entry.mode = layer_path.stat().st_size, 0o644
        with layer_path.open("rb") as layer:
            archive.addfile(entry, layer)
    layer_path.unlink()
    return f"sha256:{config_hex}"


def read_archive(path: Path) -> ArchiveImage:
    """Reads and checks an archive's manifest and config. BadInput if it is no docker-save archive of one image."""
    where = str(path)
    try:
        with tarfile.open(path) as archive:
            manifest = json.loads(_member(archive, "manifest.json", where))
            if not isinstance(manifest, list) or len(manifest) != 1:
                raise BadInput("the archive must hold exactly one image", where=where)
            entry = manifest[0]
            config_bytes = _member(archive, str(entry["Config"]), where)
            config = json.loads(config_bytes)
            layers = tuple(str(name) for name in entry["Layers"])
            tags = tuple(str(tag) for tag in entry.get("RepoTags") or ())
    except (tarfile.TarError, OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"not a docker-save archive ({error})", where=where, hint="make one with `docker save -o FILE IMAGE`"
        ) from error
    return ArchiveImage(f"sha256:{hashlib.sha256(config_bytes).hexdigest()}", tags, layers, config)


def unpack(path: Path, image: ArchiveImage, tree: Path) -> None:
    """Lays the archive's layers over each other in `tree`, honouring whiteouts; each layer's digest is checked."""
    rootfs = image.config.get("rootfs")
    wanted = rootfs.get("diff_ids", []) if isinstance(rootfs, dict) else []
    if len(wanted) != len(image.layers):
        raise BadInput("the archive's config and manifest disagree on the number of layers", where=str(path))
    tree.mkdir(parents=True)
    with tarfile.open(path) as archive:
        for name, diff_id in zip(image.layers, wanted, strict=True):
            source = archive.extractfile(name)
            if source is None:
                raise BadInput(f"layer {name} is missing", where=str(path))
            hashing = _HashingReader(source)
            with tarfile.open(fileobj=cast("IO[bytes]", hashing), mode="r|") as layer:
                _apply_layer(layer, tree, where=str(path))
            hashing.drain()
            if diff_id != f"sha256:{hashing.digest.hexdigest()}":
                raise BadInput(f"layer {name} does not have the digest its config names", where=str(path))


def _apply_layer(layer: tarfile.TarFile, tree: Path, *, where: str) -> None:
    for member in layer:
        name = PurePosixPath(member.name.lstrip("/"))
        if ".." in name.parts:
            raise BadInput(f"layer entry {member.name!r} leaves the image", where=where)
        if not name.parts:
            continue
        folder = _inside(tree, name.parent, where=where)
        if name.name.startswith(".wh."):
            _whiteout(folder, name.name)
        else:
            _place(layer, member, folder / name.name, tree, where=where)


def _place(layer: tarfile.TarFile, member: tarfile.TarInfo, target: Path, tree: Path, *, where: str) -> None:
    """Puts one entry at its place. Devices are left out: they come from the sandbox's own /dev, not from an image."""
    if member.isdir():
        if target.is_symlink() or not target.is_dir():
            _remove(target)
            target.mkdir()
        target.chmod(member.mode & 0o1777 | 0o700)
        return
    _remove(target)
    if member.issym():
        target.symlink_to(member.linkname)
    elif member.islnk():
        link = PurePosixPath(member.linkname.lstrip("/"))
        if ".." in link.parts:
            raise BadInput(f"layer link {member.linkname!r} leaves the image", where=where)
        os.link(_inside(tree, link.parent, where=where) / link.name, target, follow_symlinks=False)
    elif member.isreg():
        source = layer.extractfile(member)
        with target.open("wb") as sink:
            while source is not None and (chunk := source.read(1 << 20)):
                sink.write(chunk)
        target.chmod(member.mode & 0o777 | 0o400)


def _inside(tree: Path, folder: PurePosixPath, *, where: str) -> Path:
    """The real folder that `folder` means with `tree` as the root: links are followed as chroot would follow them."""
    todo, done, hops = list(folder.parts), tree, 0
    while todo:
        part = todo.pop(0)
        if part in ("/", ".", ""):
            continue
        if part == "..":
            done = done.parent if done != tree else tree
            continue
        step = done / part
        if step.is_symlink():
            hops += 1
            if hops > 40:
                raise BadInput(f"layer folder {folder} is a loop of links", where=where)
            target = PurePosixPath(step.readlink())
            done = tree if target.is_absolute() else done
            todo = [*target.parts, *todo]
            continue
        step.mkdir(exist_ok=True)
        done = step
    return done


def _whiteout(folder: Path, name: str) -> None:
    if name == ".wh..wh..opq":
        for child in list(folder.iterdir()):
            _remove(child)
    else:
        _remove(folder / name.removeprefix(".wh."))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        for child in path.iterdir():
            _remove(child)
        path.rmdir()
    elif path.is_symlink() or path.exists():
        path.unlink()


def _write_layer(tree: Path, raw: IO[bytes]) -> str:
    hashing = _HashingWriter(raw)
    with tarfile.open(fileobj=cast("IO[bytes]", hashing), mode="w|", format=tarfile.GNU_FORMAT) as layer:
        for path in _sorted_tree(tree):
            facts = path.lstat()
            entry = _fixed(tarfile.TarInfo(str(path.relative_to(tree))))
            entry.mode = stat.S_IMODE(facts.st_mode) & 0o1777
            if stat.S_ISLNK(facts.st_mode):
                entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, str(path.readlink()), 0o777
                layer.addfile(entry)
            elif stat.S_ISDIR(facts.st_mode):
                entry.type = tarfile.DIRTYPE
                layer.addfile(entry)
            elif stat.S_ISREG(facts.st_mode):
                entry.size = facts.st_size
                with path.open("rb") as content:
                    layer.addfile(entry, content)
    return hashing.digest.hexdigest()


def _sorted_tree(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir(), key=lambda child: os.fsencode(child.name)):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _sorted_tree(path)


def _fixed(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, 0, "", ""
    return entry


def _add_bytes(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = _fixed(tarfile.TarInfo(name))
    entry.size, entry.mode = len(data), 0o644
    archive.addfile(entry, io.BytesIO(data))


def _member(archive: tarfile.TarFile, name: str, where: str) -> bytes:
    info = archive.getmember(name)
    if info.size > MAX_METADATA:
        raise BadInput(f"{name} is larger than {MAX_METADATA} bytes", where=where)
    source = archive.extractfile(info)
    if source is None:
        raise BadInput(f"{name} is not a file", where=where)
    return source.read()


class _HashingWriter:
    def __init__(self, raw: IO[bytes]) -> None:
        self.raw, self.digest = raw, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self.raw.write(data)


class _HashingReader:
    def __init__(self, raw: IO[bytes]) -> None:
        self.raw, self.digest = raw, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self.raw.read(size)
        self.digest.update(data)
        return data

    def drain(self) -> None:
        while self.read(1 << 20):
            pass
