"""Options and a lab's trust folder to the anchors of one verification; nothing is ever taken from the target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from labaudit.attest.keys import PublicKey
from labaudit.attest.trust_store import trusted_keys
from labaudit.errors import BadInput
from labaudit.store.lab_folder import LabFolder
from labaudit.verify.request import Anchors


def gather_anchors(
    *,
    keys: Sequence[Path] = (),
    identity: str | None = None,
    issuer: str | None = None,
    trusted_root: Path | None = None,
    lab: LabFolder | None = None,
    target: Path | None = None,
) -> Anchors:
    """Whom the caller trusts: what was named, else the keys in the lab's trust folder."""
    if (identity is None) != (issuer is None):
        raise BadInput("--identity and --issuer go together", hint="name who vouches for the identity")
    named = tuple(PublicKey.load(path) for path in keys)
    if not named and identity is None and lab is not None and not _inside(lab.trust, target):
        named = tuple(item.key for item in trusted_keys(lab.trust))
    return Anchors(named, identity, issuer, trusted_root)


def _inside(folder: Path, target: Path | None) -> bool:
    """True when a trust folder came along with the target: then it proves nothing."""
    if target is None or not target.is_dir():
        return False
    return folder.resolve().is_relative_to(target.resolve())
