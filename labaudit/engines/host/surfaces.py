"""The trial's surfaces as host folders: /in, /out, /workspace and /state, private, bounded where root allows.

    <runtime>/<sandbox id>/owner          which runner this belongs to
    <runtime>/<sandbox id>/in out workspace state
    <runtime>/<sandbox id>/run            sockets and proxy logs, never shown to the trial

With root, each writable surface is a tmpfs of its own with a limit on bytes and inodes: RLIMIT_FSIZE is per file, so
it cannot bound a folder. Without root they are plain folders and the caller records the limits as unenforced.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from labaudit.engines.host.ownership import Owner, this_process
from labaudit.engines.host.syscalls import MS_NODEV, MS_NOSUID, mount, unmount
from labaudit.engines.protocol import Reaped
from labaudit.engines.result import Unenforced
from labaudit.engines.spec import Limits, SurfacePaths
from labaudit.errors import EnvironmentLacks

WRITABLE = ("out", "workspace", "state")
OWNER = "owner"
# A folder gets its name once its owner stands in it, and loses its owner last: one without an owner is nobody's.
UNNAMED = ".new-"
UNNAMED_FOR = 600.0


def runtime_folder() -> Path:
    """LABAUDIT_RUNTIME_DIR; /run/labaudit for root; else a folder of the user's own in /var/tmp."""
    chosen = os.environ.get("LABAUDIT_RUNTIME_DIR")
    if chosen:
        folder = Path(chosen)
    elif os.geteuid() == 0:
        folder = Path("/run/labaudit")
    else:
        folder = Path(f"/var/tmp/labaudit-{os.geteuid()}")  # noqa: S108, owner and kind are checked below
    try:
        folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        facts = folder.lstat()
    except OSError as error:
        raise EnvironmentLacks(
            f"the runtime folder cannot be used: {error.strerror}",
            where=str(folder),
            hint="set LABAUDIT_RUNTIME_DIR to a folder of yours",
        ) from error
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
        raise EnvironmentLacks(
            "the runtime folder belongs to someone else",
            where=str(folder),
            hint="set LABAUDIT_RUNTIME_DIR to a folder of yours",
        )
    # Nobody else writes here, and a sandbox's user must get through it to its own folder, also under a strict umask.
    if facts.st_mode & 0o022 or facts.st_mode & 0o011 != 0o011:
        folder.chmod(0o711)
    return folder


class Surfaces:
    """One sandbox's folders on the host, from `create` to `remove`."""

    def __init__(self, folder: Path, user: tuple[int, int]) -> None:
        self.folder = folder
        self.id = folder.name
        self.user = user
        self.unenforced: list[Unenforced] = []

    @classmethod
    def create(cls, limits: Limits, user: tuple[int, int]) -> Surfaces:
        """Makes the folders. Ids are random, so no trial can guess another's folder."""
        surfaces = cls(_owned(secrets.token_hex(8)), user)
        for name in ("in", "run"):
            (surfaces.folder / name).mkdir(mode=0o755)
        sizes = {"out": limits.out_mb, "workspace": limits.workspace_mb, "state": limits.state_mb}
        for name in WRITABLE:
            surfaces._writable(name, sizes[name], limits.files)
        return surfaces

    def _writable(self, name: str, megabytes: int, files: int) -> None:
        path = self.folder / name
        path.mkdir(mode=0o700)
        if os.geteuid() != 0:
            why = "a size-limited tmpfs needs root; only single files are bounded"
            self.unenforced.append(Unenforced(f"{name}_mb", why))
            return
        options = f"size={megabytes}m,nr_inodes={files},mode=0700,uid={self.user[0]},gid={self.user[1]}"
        try:
            mount("labaudit", str(path), "tmpfs", MS_NOSUID | MS_NODEV, options)
        except OSError as error:
            os.chown(path, *self.user)
            self.unenforced.append(Unenforced(f"{name}_mb", f"no tmpfs could be mounted: {error.strerror}"))

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    @property
    def run(self) -> Path:
        """Sockets and logs of this sandbox's companions; never mounted into the trial."""
        return self.folder / "run"

    def host_paths(self, dataset: Path | None, harness: Path | None) -> SurfacePaths:
        """The surfaces as the runner sees them."""
        return SurfacePaths(
            input=str(self / "in"),
            out=str(self / "out"),
            workspace=str(self / "workspace"),
            state=str(self / "state"),
            dataset=str(dataset) if dataset else None,
            harness=str(harness) if harness else None,
            tmp="",
        )

    def hand_over(self) -> None:
        """Gives the surfaces to the trial's user: all may read /in, only the user writes the others."""
        for name in WRITABLE:
            for path in _tree(self / name):
                if os.geteuid() == 0:
                    os.chown(path, *self.user, follow_symlinks=False)
        for path in _tree(self / "in"):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() else 0o644)

    def remove(self) -> None:
        """Unmounts and deletes everything. Idempotent."""
        remove_folder(self.folder)


def owned_folder(kind: str) -> Path:
    """A new runtime folder of this process for things that outlive a sandbox; reaped once the process is dead."""
    return _owned(f"{kind}-{secrets.token_hex(8)}")


def _owned(name: str) -> Path:
    made = runtime_folder() / f"{UNNAMED}{name}"
    made.mkdir(mode=0o711)
    made.chmod(0o711)
    (made / OWNER).write_text(str(this_process()))
    return made.rename(made.with_name(name))


def remove_folder(folder: Path) -> None:
    """Unmounts and deletes one sandbox's runtime folder; another process may be at it too."""
    for name in WRITABLE:
        with suppress(OSError):
            if (folder / name).is_mount():
                unmount(str(folder / name))
    with suppress(OSError):
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name == OWNER):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, onerror=partial(_make_writable, folder))
            elif entry.name != OWNER or len(list(folder.iterdir())) == 1:
                entry.unlink(missing_ok=True)
        folder.rmdir()


def reap_folders() -> tuple[Reaped, ...]:
    """Clears the runtime folders of runners that are dead."""
    gone = []
    for folder in sorted(runtime_folder().iterdir()):
        if _is_nobodys(folder):
            remove_folder(folder)
            gone.append(Reaped("folder", folder.name))
    return tuple(gone)


def _is_nobodys(folder: Path) -> bool:
    try:
        owner = Owner.parse((folder / OWNER).read_text())
    except FileNotFoundError:
        # being made just now, or abandoned by a process that was killed in its making or its removal
        with suppress(OSError):
            age = time.time() - folder.stat().st_mtime
            return folder.is_dir() and (not folder.name.startswith(UNNAMED) or age > UNNAMED_FOR)
        return False
    except OSError:
        return False
    return owner is not None and owner.is_dead()


def _tree(folder: Path) -> Iterator[Path]:
    yield folder
    for parent, names, files in os.walk(folder):
        for name in (*names, *files):
            yield Path(parent, name)


def _make_writable(folder: Path, action: object, path: str, _error: object) -> None:
    """A harness may leave folders without write permission; they are ours to delete all the same."""
    with suppress(OSError):
        # Never above the folder that goes: what is there is the way of every other sandbox to its own.
        if Path(path) != folder:
            Path(path).parent.chmod(0o700)
        if Path(path).is_dir() and not Path(path).is_symlink():
            Path(path).chmod(0o700)
            shutil.rmtree(path, ignore_errors=True)
        else:
            Path(path).unlink(missing_ok=True)
