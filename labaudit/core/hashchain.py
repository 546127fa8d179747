"""Events to a chain of hashes that starts from the trial they belong to.

`self = sha256(prev || "\\n" || canonical(event without hashchain))`, both as 64 lowercase hex characters. The first
`prev` is derived from run, trial, attempt and resolved digest, so a log cannot be moved to another trial.
"""

from __future__ import annotations

from hashlib import sha256

from labaudit.core.canonical import canonical_bytes
from labaudit.core.digest import sha256_hex
from labaudit.errors import BadInput

EVENTS_DOMAIN = "labaudit/events/v1"
_MARK = b'"hashchain":{"prev":"'
_MIDDLE = b'","self":"'
_END = b'"},'
# mark, 64 hex, middle, 64 hex, end
_CHAIN_LENGTH = len(_MARK) + 64 + len(_MIDDLE) + 64 + len(_END)


def genesis(run_id: str, trial_id: str, attempt: int, resolved_digest: str) -> str:
    """The `prev` of a log's first event."""
    return sha256_hex(canonical_bytes([EVENTS_DOMAIN, run_id, trial_id, attempt, resolved_digest]))


class EventHasher:
    """The seed's interface over the chain rule."""

    @staticmethod
    def hash_prev(prev_hash: str, event_line: bytes) -> str:
        """`self` for an event whose canonical form without `hashchain` is `event_line`."""
        return sha256(prev_hash.encode() + b"\n" + event_line).hexdigest()


def link(prev: str, event: dict[str, object]) -> tuple[bytes, str]:
    """The stored line (without newline) of `event` after `prev`, and its own hash.

    The chain is spliced into the body's bytes: only `attempt` and `event_type` sort before `hashchain`.
    """
    body = canonical_bytes(event)
    own = sha256(prev.encode() + b"\n" + body).hexdigest()
    cut = _splice_point(body)
    chain = _MARK + prev.encode() + _MIDDLE + own.encode() + _END
    return body[:cut] + chain + body[cut:], own


def _splice_point(body: bytes) -> int:
    cut = body.find(b',"ids":{')
    if cut < 0:
        raise BadInput("an event without ids cannot be chained")
    return cut + 1


def split(line: bytes) -> tuple[bytes, str, str]:
    """A stored line to (body without hashchain, prev, self); works on bytes, so the line is not parsed."""
    start = line.find(_MARK)
    middle = start + len(_MARK) + 64
    end = start + _CHAIN_LENGTH
    if start < 0 or line[middle : middle + len(_MIDDLE)] != _MIDDLE or line[end - len(_END) : end] != _END:
        raise BadInput("an event line has no hashchain where its canonical form puts it")
    prev = line[start + len(_MARK) : middle]
    own = line[middle + len(_MIDDLE) : end - len(_END)]
    return line[:start] + line[end:], prev.decode("ascii", "replace"), own.decode("ascii", "replace")
