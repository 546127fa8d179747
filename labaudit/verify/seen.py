"""A checkpoint that the caller kept, against the one that is there now: history may grow, never shrink or change.

A run is sealed once, so its tree never grows; a publication log grows, and its tiles prove that the old head is a
prefix of the new one.
"""

from __future__ import annotations

from collections.abc import Iterator

from labaudit.attest.checkpoint import Checkpoint, parse_checkpoint
from labaudit.attest.log_key import NoteVerifier
from labaudit.errors import BadInput
from labaudit.verify.checks.tree import PATH, log_key, read_checkpoint
from labaudit.verify.run_view import RunView
from labaudit.verify.verdict import Finding


def seen_checkpoint_still_holds(view: RunView) -> Iterator[Finding]:
    """The run's checkpoint is the one that was seen: same log, same size, same root."""
    seen = parse_seen(view.request.seen or b"")
    if isinstance(seen, Finding):
        yield seen
        return
    now = read_checkpoint(view)
    if isinstance(now, Finding):
        yield now
        return
    yield from compare_heads(seen, now, PATH, log_key(view))
    if seen.origin == now.origin and now.size > seen.size:
        yield Finding("seen_fork", PATH, f"a sealed run had {seen.size} records and now has {now.size}")


def parse_seen(data: bytes) -> Checkpoint | Finding:
    """The checkpoint that the caller kept."""
    try:
        return parse_checkpoint(data, where="--seen")
    except BadInput as error:
        return Finding("seen_malformed", "--seen", error.what)


def compare_heads(seen: Checkpoint, now: Checkpoint, path: str, key: NoteVerifier | None) -> Iterator[Finding]:
    """What two heads alone tell: another log, a shorter one, or another tree of the same size."""
    if seen.origin != now.origin:
        yield Finding("seen_other_log", path, f"you saw {seen.origin[:100]!r}, this is {now.origin[:100]!r}")
        return
    if key is not None and not seen.signed_by(key):
        # Without its signature the old head proves nothing against the new one.
        yield Finding("seen_other_log", "--seen", "the log's key did not sign the checkpoint that you gave")
        return
    if now.size < seen.size:
        yield Finding("seen_rollback", path, f"you saw {seen.size} entries, now there are {now.size}")
    elif now.size == seen.size and now.root != seen.root:
        yield Finding("seen_fork", path, f"two roots of one size, {now.size}")
