"""Read-only inputs as the trial's user can read them: a frozen copy, made once per engine.

A harness that is edited while its run goes on must not change later trials, and a folder below /root or with mode
0600 must still be readable by a user who is not root. Large trees that are readable as they are, are not copied.
"""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from pathlib import Path

from labaudit.engines.host.surfaces import owned_folder, remove_folder
from labaudit.errors import BadInput, EnvironmentLacks

COPY_UP_TO = 64 << 20


class Staging:
    """Copies of host folders and files, keyed by their path."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._staged: dict[Path, Path] = {}
        self._lock = threading.Lock()

    def readable(self, source: Path) -> Path:
        """A path with the content of `source` that every user can read."""
        try:
            real = source.resolve(strict=True)
        except OSError as error:
            raise BadInput(f"cannot be used: {error.strerror}", where=str(source)) from error
        with self._lock:
            if real not in self._staged:
                self._staged[real] = self._stage(real)
            return self._staged[real]

    def forget(self, source: Path) -> None:
        """Drops the copy, so that the next use takes the content as it is then."""
        with self._lock:
            self._staged.pop(source.resolve(), None)

    def _stage(self, real: Path) -> Path:
        if _size(real) > COPY_UP_TO:
            if not _open_to_all(real):
                raise EnvironmentLacks(
                    f"is larger than {COPY_UP_TO >> 20} MB and not readable by every user",
                    where=str(real),
                    hint=f"chmod -R a+rX {real}, and a+x on the folders above it",
                )
            return real
        target = self._place() / f"{len(self._staged)}-{secrets.token_hex(4)}" / (real.name or "root")
        target.parent.mkdir(mode=0o755)
        try:
            if real.is_dir():
                shutil.copytree(real, target, symlinks=True, ignore=_special)
            else:
                shutil.copyfile(real, target)
        except (OSError, shutil.Error) as error:
            raise BadInput(f"cannot be copied for the trials: {error}", where=str(real)) from error
        _open_up(target)
        return target

    def _place(self) -> Path:
        if self._folder is None:
            self._folder = owned_folder("staged")
        return self._folder

    def close(self) -> None:
        """Deletes the copies."""
        with self._lock:
            if self._folder is not None:
                remove_folder(self._folder)
            self._folder = None
            self._staged.clear()


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    total = 0
    for parent, _, files in os.walk(path):
        total += sum(Path(parent, name).lstat().st_size for name in files)
        if total > COPY_UP_TO:
            break
    return total


def _special(folder: str, names: list[str]) -> list[str]:
    """Sockets, FIFOs and devices are not content."""
    odd = []
    for name in names:
        path = Path(folder, name)
        if not (path.is_symlink() or path.is_dir() or path.is_file()):
            odd.append(name)
    return odd


def _open_up(target: Path) -> None:
    for path in [target, *target.rglob("*")]:
        if not path.is_symlink():
            executable = path.is_dir() or path.stat().st_mode & 0o111
            path.chmod(0o755 if executable else 0o644)


def _open_to_all(real: Path) -> bool:
    above = all(parent.stat().st_mode & 0o001 for parent in real.parents)
    below = all(path.stat().st_mode & 0o004 for path in [real, *real.rglob("*")] if not path.is_symlink())
    return above and below
