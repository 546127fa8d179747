"""What one evaluator says: a value, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Cause = Literal["missing", "error", "absent", "invalid", "nan"]
Value = bool | int | float | str


@dataclass(frozen=True)
class Verdict:
    """A metric's value with the sentence and snippets that explain it."""

    metric: str
    value: Value | None
    cause: Cause | None = None
    explanation: str = ""
    snippets: tuple[str, ...] = ()

    @classmethod
    def missing(cls, metric: str, cause: Cause, explanation: str) -> Verdict:
        """No value, and why."""
        return cls(metric, None, cause, explanation)
