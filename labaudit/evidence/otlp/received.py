"""What a receiver took in during one trial, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ReceivedSpans:
    """One file of redacted OTLP/JSON lines (None when no span came) beside its counts."""

    path: Path | None
    spans: int
    requests: int
    refused_spans: int = 0
    problems: tuple[str, ...] = ()
    redaction_applied: bool = False
