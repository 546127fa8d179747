"""A harness's source folder, lockfile and image to digests that say what was executed.

`source_digest` is the hash of the folder's content; where the folder is in a git work tree, commit, dirtiness and the
digest of the diff stand beside it. The same listing makes the snapshot that trials mount, so what ran is what was
hashed.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labaudit.core.digest import Digest, hash_file
from labaudit.errors import BadInput

# Neither is part of what a harness is: one is history, the other a cache that interpreters rewrite at will.
LEFT_OUT = {".git", "__pycache__"}
MAX_ARCHIVE_BYTES = 64 << 20


@dataclass(frozen=True)
class SourceEntry:
    """One file or link of a source folder."""

    path: str
    kind: str
    executable: bool
    sha256: str
    size: int


@dataclass(frozen=True)
class HarnessIdentity:
    """What the spec and the attestation say about the harness."""

    exec_digest: Digest
    entry_command: tuple[str, ...]
    source_digest: Digest | None = None
    source_provenance: dict[str, object] | None = None
    lockfile_digest: Digest | None = None
    runtime_fingerprint: str | None = None


def identify(
    *, source: Path | None, command: Sequence[str], lockfile: Path | None, image_id: str | None, fingerprint: str | None
) -> HarnessIdentity:
    """The identity of a harness as it stands now."""
    source_digest = provenance = None
    if source is not None:
        source_digest = directory_digest(source)
        provenance = source_provenance(source, source_digest)
    return HarnessIdentity(
        exec_digest=Digest.parse(image_id) if image_id else _binary_digest(command, source),
        entry_command=tuple(command),
        source_digest=source_digest,
        source_provenance=provenance,
        lockfile_digest=_file_digest(lockfile) if lockfile else None,
        runtime_fingerprint=fingerprint,
    )


def list_source(source: Path) -> list[SourceEntry]:
    """Files and links below `source`, sorted; devices, sockets and links out of it are refused."""
    if not source.is_dir():
        raise BadInput("is no directory", where=str(source), hint="runtime.harness.source names the harness's folder")
    entries: list[SourceEntry] = []
    for folder, names, files in os.walk(source):
        names[:] = sorted(name for name in names if name not in LEFT_OUT)
        links = [name for name in names if (Path(folder) / name).is_symlink()]
        for name in sorted([*files, *links]):
            path = Path(folder) / name
            entries.append(_entry(path, source))
    return sorted(entries, key=lambda entry: entry.path)


def _entry(path: Path, source: Path) -> SourceEntry:
    relative = path.relative_to(source).as_posix()
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        target = os.readlink(path)  # noqa: PTH115 - the text itself, unresolved
        if target.startswith("/") or not path.resolve().is_relative_to(source.resolve()):
            raise BadInput(f"link {relative} points out of the source folder", where=str(source))
        return SourceEntry(relative, "link", False, Digest.of(target.encode()).hex, 0)
    if not stat.S_ISREG(mode):
        raise BadInput(f"{relative} is no regular file", where=str(source))
    digest, size = hash_file(path)
    return SourceEntry(relative, "file", bool(mode & 0o111), digest, size)


def directory_digest(source: Path) -> Digest:
    """The digest over names, kinds, exec bits and content."""
    return digest_of_entries(list_source(source))


def digest_of_entries(entries: Sequence[SourceEntry]) -> Digest:
    """The same from a listing."""
    return Digest.of_json([[entry.path, entry.kind, entry.executable, entry.sha256] for entry in entries])


def archive_source(source: Path) -> bytes | None:
    """A deterministic tar of the source, or None when it is too large to keep with the run."""
    entries = list_source(source)
    if sum(entry.size for entry in entries) > MAX_ARCHIVE_BYTES:
        return None
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in entries:
            info = tarfile.TarInfo(entry.path)
            info.mode = 0o755 if entry.executable else 0o644
            if entry.kind == "link":
                info.type = tarfile.SYMTYPE
                info.linkname = os.readlink(source / entry.path)  # noqa: PTH115
                archive.addfile(info)
            else:
                data = (source / entry.path).read_bytes()
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def snapshot_source(source: Path, target: Path) -> Digest:
    """Copies the source to `target` and returns the digest of the copy, so a later edit changes no trial."""
    for entry in list_source(source):
        destination = target / entry.path
        destination.parent.mkdir(parents=True, exist_ok=True)
        if entry.kind == "link":
            destination.symlink_to(os.readlink(source / entry.path))  # noqa: PTH115
        else:
            shutil.copyfile(source / entry.path, destination)
            destination.chmod(0o755 if entry.executable else 0o644)
    target.mkdir(parents=True, exist_ok=True)
    return directory_digest(target)


def source_provenance(source: Path, content: Digest) -> dict[str, object]:
    """Git commit, dirtiness and diff digest where the source is under git; else that it is a plain folder."""
    commit = _git(source, "rev-parse", "--verify", "HEAD")
    if commit is None:
        return {"kind": "directory", "directory_digest": content}
    changes = _git(source, "status", "--porcelain", "--untracked-files=all", "--", ".") or b""
    provenance: dict[str, object] = {
        "kind": "git",
        "commit": commit.decode().strip(),
        "dirty": bool(changes.strip()),
        "directory_digest": content,
    }
    if changes.strip():
        provenance["diff_digest"] = Digest.of(_git(source, "diff", "--binary", "HEAD", "--", ".") or b"")
    return provenance


def _git(folder: Path, *arguments: str) -> bytes | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            timeout=60,
            check=False,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _file_digest(path: Path) -> Digest:
    if not path.is_file():
        raise BadInput("there is no such file", where=str(path), hint="runtime.harness.lockfile names a file")
    return Digest.from_hex(hash_file(path)[0])


def _binary_digest(command: Sequence[str], source: Path | None) -> Digest:
    """Without an image the thing executed is the program that the command names on this host."""
    first = command[0]
    if source is not None and first.startswith("/harness/"):
        program: str | None = str(source / first.removeprefix("/harness/"))
    else:
        program = shutil.which(first)
    if program is None or not Path(program).is_file():
        raise BadInput(f"the command {first!r} is not there", where="runtime.harness.command")
    return Digest.from_hex(hash_file(Path(program).resolve())[0])
