"""What a caller asks of a verification: whose signature counts, under which policy, and how much to recompute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labaudit.attest.keys import PublicKey
from labaudit.verify.policy import Policy, load_policy
from labaudit.verify.verdict import Finding


@dataclass(frozen=True)
class Anchors:
    """Trust that the caller brings: keys, or one Sigstore identity with its issuer and trusted root."""

    keys: tuple[PublicKey, ...] = ()
    identity: str | None = None
    issuer: str | None = None
    trusted_root: Path | None = None

    @property
    def given(self) -> bool:
        """True when there is anything to trust."""
        return bool(self.keys) or self.identity is not None


# Loaded on demand from above (they need scipy or the site); each takes a run folder and yields findings.
Recompute = Callable[[Any], list[Finding]]


@dataclass(frozen=True)
class Request:
    """One verification as the caller wants it."""

    anchors: Anchors = field(default_factory=Anchors)
    policy: Policy = field(default_factory=lambda: load_policy("default"))
    integrity_only: bool = False
    seen: bytes | None = None
    recompute_analysis: Recompute | None = None
    rebuild: Recompute | None = None
