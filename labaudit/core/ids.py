"""Names of runs and trials from what they are made of, the same every time."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from labaudit.core.canonical import canonical_bytes
from labaudit.core.digest import Digest, sha256_hex
from labaudit.errors import BadInput

_VARIANT = re.compile(r"[A-Za-z0-9._-]+")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]|^\.")
_LONGEST_PART = 60


def run_id(started: datetime, resolved_digest: Digest) -> str:
    """`run-<UTC time>-<8 hex of the resolved digest>`; the store adds `-2` and so on if it is taken."""
    return f"run-{started.astimezone(UTC):%Y%m%dT%H%M%SZ}-{resolved_digest.hex[:8]}"


def trial_id(resolved_digest: str, variant: str, task: str, repl: int) -> str:
    """`<variant>.<task>.r<repl>-<8 hex>`, unsafe characters replaced; the hash keeps two odd names apart."""
    stamp = sha256_hex(canonical_bytes([str(resolved_digest), variant, task, repl]))[:8]
    return f"{safe_name(variant)}.{safe_name(task)}.r{repl}-{stamp}"


def safe_name(text: str) -> str:
    """`text` as part of a file name: letters, digits, `.`, `_` and `-`, no leading dot, never empty, bounded."""
    return _UNSAFE.sub("_", text)[:_LONGEST_PART] or "_"


def check_variant_id(text: str, *, where: str = "") -> str:
    """The id itself when a variant may be called so."""
    if not _VARIANT.fullmatch(text) or text in {".", ".."} or len(text) > _LONGEST_PART:
        hint = f"letters, digits, dot, underscore and hyphen, at most {_LONGEST_PART} of them"
        raise BadInput(f"variant id {text[:80]!r} is not allowed", where=where, hint=hint)
    return text
