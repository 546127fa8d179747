"""The image cache: from a name, an id or an archive to an id, an archive and an unpacked file tree.

    <cache>/images/<hex>/image.json   name, source, packages, notes
    <cache>/images/<hex>/archive.tar  docker-save archive
    <cache>/images/<hex>/tree/        unpacked, for engines without a daemon
    <cache>/bundled.json              package set -> id

Folders appear whole, by rename; a lock file keeps two builders apart.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from labaudit.core.digest import Digest
from labaudit.engines.images.archive import read_archive, unpack, write_archive
from labaudit.engines.images.debian import Package, assemble_tree, compile_tree, download, plan_packages
from labaudit.engines.images.host_tree import host_tree
from labaudit.engines.protocol import ResolvedImage
from labaudit.errors import EnvironmentLacks
from labaudit.store.atomic import write_json

BUNDLED_TAG = "labaudit-demo:latest"
BUNDLED_NAMES = frozenset({"labaudit-demo", BUNDLED_TAG})
ENV = {"LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt"}
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_FORMAT = 1
"""Raised whenever the way a tree is made changes, so that an old cache is not taken for a new image."""


def cache_folder() -> Path:
    """LABAUDIT_CACHE_DIR; /var/cache/labaudit for root (sandbox users must reach it); else the user's own cache."""
    if chosen := os.environ.get("LABAUDIT_CACHE_DIR"):
        return Path(chosen)
    if os.geteuid() == 0:
        return Path("/var/cache/labaudit")
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base or Path.home() / ".cache") / "labaudit"


@dataclass(frozen=True)
class CachedImage:
    """An image that lies in the cache."""

    image: ResolvedImage
    folder: Path

    @property
    def archive(self) -> Path:
        return self.folder / "archive.tar"


class ImageCache:
    """Finds, builds and unpacks images below one folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_folder()

    def bundled(self) -> CachedImage:
        """The bundled image, built on first use and whenever the packages that apt offers have changed."""
        index = self._index()
        if not os.environ.get("LABAUDIT_REFRESH_IMAGE") and (known := self._known(index.get("current"))):
            return known
        with self._locked():
            index = self._index()
            if not os.environ.get("LABAUDIT_REFRESH_IMAGE") and (known := self._known(index.get("current"))):
                return known
            built = self._build()
            write_json(self.folder / "bundled.json", {"current": built.image.id, "format": _FORMAT})
            return built

    def from_archive(self, path: Path) -> CachedImage:
        """Takes an archive into the cache and gives its id."""
        found = read_archive(path)
        if known := self._known(found.id):
            return known
        with self._locked():
            if known := self._known(found.id):
                return known
            with self._staging() as stage:
                shutil.copyfile(path, stage / "archive.tar")
                facts = ResolvedImage(found.id, found.tags[0] if found.tags else path.name, "archive", env=found.env)
                return self._keep(stage, facts)

    def find(self, reference: str) -> CachedImage | None:
        """An image in the cache by id, unique id prefix of 12 or more, or name."""
        hexpart = reference.removeprefix("sha256:")
        for folder in sorted((self.folder / "images").glob("*")):
            known = self._known(f"sha256:{folder.name}")
            if known is None:
                continue
            by_id = len(hexpart) >= 12 and folder.name.startswith(hexpart)
            if by_id or reference in (known.image.name, known.image.name.removesuffix(":latest")):
                return known
        return None

    def tree(self, cached: CachedImage) -> Path:
        """The image's file tree, unpacked on first use."""
        tree = cached.folder / "tree"
        if tree.is_dir():
            return tree
        with self._locked():
            if not tree.is_dir():
                with self._staging() as stage:
                    unpack(cached.archive, read_archive(cached.archive), stage / "tree")
                    (stage / "tree").rename(tree)
        return tree

    def _build(self) -> CachedImage:
        with self._staging() as stage:
            tree = stage / "tree"
            packages, source, notes = self._fill(stage, tree)
            if problem := compile_tree(tree):
                notes.append(problem)
            labels = {"org.labaudit.image": "bundled", "org.labaudit.source": source}
            machine = _MACHINES.get(platform.machine(), platform.machine())
            archive = stage / "archive.tar"
            image_id = write_archive(tree, archive, tag=BUNDLED_TAG, env=ENV, labels=labels, machine=machine)
            if known := self._known(image_id):
                return known
            names = tuple((package.name, package.version) for package in packages)
            facts = ResolvedImage(image_id, BUNDLED_TAG, source, tuple(notes), names, ENV)
            return self._keep(stage, facts)

    def _fill(self, stage: Path, tree: Path) -> tuple[tuple[Package, ...], Literal["bundled", "host"], list[str]]:
        try:
            packages = plan_packages()
            (stage / "debs").mkdir()
            assemble_tree(download(packages, stage / "debs"), tree)
        except EnvironmentLacks as error:
            shutil.rmtree(tree, ignore_errors=True)
            host_tree(tree)
            note = f"built from this host's interpreter, because packages could not be had: {error.what}"
            return (), "host", [note]
        finally:
            shutil.rmtree(stage / "debs", ignore_errors=True)
        return packages, "bundled", []

    def _keep(self, stage: Path, facts: ResolvedImage) -> CachedImage:
        record = {"id": facts.id, "name": facts.name, "source": facts.source, "notes": list(facts.notes),
                  "packages": [list(pair) for pair in facts.packages], "env": dict(facts.env)}  # fmt: skip
        write_json(stage / "image.json", record)
        target = self._place(facts.id)
        target.parent.mkdir(parents=True, exist_ok=True)
        stage.chmod(0o755)
        stage.rename(target)
        return CachedImage(facts, target)

    def _known(self, image_id: object) -> CachedImage | None:
        if not isinstance(image_id, str):
            return None
        folder = self._place(image_id)
        try:
            record = json.loads((folder / "image.json").read_bytes())
        except (OSError, ValueError):
            return None
        facts = ResolvedImage(
            record["id"], record["name"], record["source"], tuple(record["notes"]),
            tuple((name, version) for name, version in record["packages"]), record["env"],
        )  # fmt: skip
        return CachedImage(facts, folder)

    def _place(self, image_id: str) -> Path:
        return self.folder / "images" / Digest.parse(image_id).hex

    def _index(self) -> dict[str, object]:
        try:
            index = json.loads((self.folder / "bundled.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return index if isinstance(index, dict) and index.get("format") == _FORMAT else {}

    @contextmanager
    def _staging(self) -> Iterator[Path]:
        stage = Path(tempfile.mkdtemp(prefix=".building-", dir=self.folder))
        try:
            yield stage
        finally:
            shutil.rmtree(stage, ignore_errors=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o755)
            handle = (self.folder / ".lock").open("w")
        except OSError as error:
            raise EnvironmentLacks(
                f"the image cache cannot be written: {error.strerror}", where=str(self.folder),
                hint="set LABAUDIT_CACHE_DIR to a folder of yours",
            ) from error  # fmt: skip
        with handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
