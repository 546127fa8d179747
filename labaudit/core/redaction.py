"""Bytes that may hold secrets to bytes that may be kept, with a count of what was taken out.

Rules name patterns and a mode: `store` keeps the text and counts it, `hash` puts a digest in its place, `drop` puts a
marker. Values of declared secrets are always dropped, also in their common encodings.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote

from labaudit.core.digest import sha256_hex
from labaudit.errors import BadInput

Mode = Literal["store", "hash", "drop"]
# A match that spans two chunks of a stream is found as long as it is no longer than this.
STREAM_OVERLAP = 8192
_SHORTEST_SECRET = 4


@dataclass(frozen=True)
class Rule:
    """One pattern and what happens to its matches."""

    pattern: re.Pattern[bytes]
    mode: Mode

    @classmethod
    def compile(cls, pattern: str, mode: Mode, *, where: str = "") -> Rule:
        """A rule from text, or BadInput when the pattern is no regular expression."""
        try:
            return cls(re.compile(pattern.encode()), mode)
        except re.error as error:
            raise BadInput(f"redaction pattern {pattern!r} is no regular expression: {error}", where=where) from error


@dataclass(frozen=True)
class Redacted:
    """What is left of some bytes, and how often each rule matched."""

    data: bytes
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def applied(self) -> bool:
        """True when anything was replaced (a `store` rule replaces nothing)."""
        return any(count for name, count in self.counts.items() if not name.endswith(":store"))


class Redactor:
    """All rules of one experiment plus the values of its secrets."""

    def __init__(self, rules: Iterable[Rule] = (), secrets: Mapping[str, str] | None = None) -> None:
        self._rules = tuple(rules)
        self._secrets = tuple(
            (name, form) for name, value in sorted((secrets or {}).items()) for form in _encodings(name, value)
        )
        self.totals: Counter[str] = Counter()

    def apply(self, data: bytes) -> Redacted:
        """`data` with secrets dropped and every rule applied, in the order they were declared."""
        counts: Counter[str] = Counter()
        for name, form in self._secrets:
            found = data.count(form)
            if found:
                counts[f"secret:{name}:drop"] += found
                data = data.replace(form, f"[secret {name} withheld]".encode())
        for number, rule in enumerate(self._rules):
            key = f"rule:{number}:{rule.mode}"
            if rule.mode == "store":
                found = sum(1 for _ in rule.pattern.finditer(data))
            else:
                data, found = rule.pattern.subn(_replacement(rule.mode), data)
            if found:
                counts[key] += found
        self.totals.update(counts)
        return Redacted(data, dict(counts))

    def text(self, value: str) -> str:
        """`value` redacted, for messages."""
        return self.apply(value.encode("utf-8", "surrogatepass")).data.decode("utf-8", "replace")

    @property
    def active(self) -> bool:
        """False when there is nothing to look for."""
        return bool(self._rules or self._secrets)

    def stream(self) -> RedactingStream:
        """A redactor for a log that arrives in pieces."""
        return RedactingStream(self)


class RedactingStream:
    """Redacts a stream chunk by chunk, holding back just enough that a match across chunks is still seen."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """What may be written now."""
        if not self._redactor.active:
            return chunk
        self._held += chunk
        if len(self._held) <= 2 * STREAM_OVERLAP:
            return b""
        # Cut at a line end where there is one, so that a match is seldom split at all.
        limit = len(self._held) - STREAM_OVERLAP
        cut = self._held.rfind(b"\n", 0, limit) + 1 or limit
        ready, self._held = self._held[:cut], self._held[cut:]
        return self._redactor.apply(ready).data

    def close(self) -> bytes:
        """The rest."""
        ready, self._held = self._held, b""
        return self._redactor.apply(ready).data


def _replacement(mode: Mode) -> bytes | _HashMatch:
    return _HashMatch() if mode == "hash" else b"[redacted]"


class _HashMatch:
    """A match to the digest that stands in its place."""

    def __call__(self, match: re.Match[bytes]) -> bytes:
        return f"[redacted sha256:{sha256_hex(match.group(0))}]".encode()


def _encodings(name: str, value: str) -> list[bytes]:
    if len(value) < _SHORTEST_SECRET:
        raise BadInput(
            f"secret {name} has fewer than {_SHORTEST_SECRET} characters",
            hint="so short a value cannot be kept out of logs without damaging them",
        )
    raw = value.encode("utf-8", "surrogateescape")
    forms = {
        raw,
        quote(value, safe="", errors="surrogateescape").encode(),
        json.dumps(value, ensure_ascii=True).strip('"').encode("utf-8", "surrogateescape"),
        base64.b64encode(raw),
        base64.b64encode(raw).rstrip(b"="),
        base64.urlsafe_b64encode(raw).rstrip(b"="),
    }
    # Longest first: a form that contains another must be replaced whole.
    return sorted(forms, key=lambda form: (-len(form), form))
