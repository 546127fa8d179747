"""The keys of a lab on disk: its own signing pair, its log key, and the public keys of others that it trusts."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from labaudit.attest.keys import PrivateKey, PublicKey
from labaudit.attest.log_key import LogKey
from labaudit.core.ids import safe_name
from labaudit.errors import BadInput
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder

PASSPHRASE_VARIABLE = "LABAUDIT_KEY_PASSPHRASE"  # noqa: S105 - the name of a variable, no secret
_MAX_TRUSTED = 1000


@dataclass(frozen=True)
class LabKeys:
    """What a lab signs with, and whether it was made just now."""

    signing: PrivateKey
    log: LogKey
    path: Path
    made_now: bool


@dataclass(frozen=True)
class NamedKey:
    """A public key and the file it came from."""

    name: str
    path: Path
    key: PublicKey


def passphrase_from_environment() -> bytes | None:
    """The passphrase of the lab's keys, when the environment gives one."""
    text = os.environ.get(PASSPHRASE_VARIABLE)
    return text.encode() if text else None


def ensure_keys(lab: LabFolder, *, key_path: Path | None = None, passphrase: bytes | None = None) -> LabKeys:
    """The keys to sign with: the file given, else the lab's own, made at first use.

    The log key always lives in the lab, because a checkpoint's log is the lab's.
    """
    secret = passphrase if passphrase is not None else passphrase_from_environment()
    path = key_path or lab.signing_key
    made_now = False
    if key_path is None and not path.exists():
        with _alone_in(lab.keys):
            if not path.exists():
                new_pair(lab, passphrase=secret)
                made_now = True
    signing = PrivateKey.load(path, passphrase=secret)
    if not lab.log_key.exists():
        with _alone_in(lab.keys):
            if not lab.log_key.exists():
                LogKey.generate().save(lab.log_key, passphrase=secret)
    return LabKeys(signing, LogKey.load(lab.log_key, passphrase=secret), path, made_now)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Two first runs of a lab at once: one makes the keys, the other waits and finds them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise atomic.explain(error, folder) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def new_pair(lab: LabFolder, *, name: str = "labaudit", passphrase: bytes | None = None) -> NamedKey:
    """Makes `keys/<name>.key` and `.pub`."""
    if safe_name(name) != name:
        raise BadInput(f"{name!r} cannot name a key file", hint="letters, digits, dot, underscore and hyphen")
    private_path, public_path = lab.keys / f"{name}.key", lab.keys / f"{name}.pub"
    pair = PrivateKey.generate()
    pair.save(private_path, public_path, passphrase=passphrase)
    return NamedKey(name, public_path, pair.public)


def trusted_keys(folder: Path) -> list[NamedKey]:
    """The public keys in a trust folder, sorted by name; no folder means no keys."""
    if not folder.is_dir():
        return []
    paths = sorted(path for path in folder.iterdir() if path.suffix in {".pub", ".pem"})
    if len(paths) > _MAX_TRUSTED:
        raise BadInput(f"holds more than {_MAX_TRUSTED} keys", where=str(folder))
    return [NamedKey(path.stem, path, PublicKey.load(path)) for path in paths]


def own_keys(lab: LabFolder) -> list[NamedKey]:
    """The public halves of the lab's own keys."""
    return trusted_keys(lab.keys)


def trust(lab: LabFolder, public_path: Path, *, name: str | None = None) -> NamedKey:
    """Puts a public key into the lab's trust folder under a name."""
    key = PublicKey.load(public_path)
    chosen = safe_name(name or public_path.stem)
    target = lab.trust / f"{chosen}.pub"
    if target.exists() and PublicKey.load(target).spki != key.spki:
        raise BadInput(f"another key is trusted as {chosen!r} already", where=str(target), hint="choose another --name")
    atomic.write_bytes(target, key.pem.encode("ascii"))
    return NamedKey(chosen, target, key)


def readable_by_others(path: Path) -> bool:
    """True when a private key's file mode lets others read it."""
    return bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))
