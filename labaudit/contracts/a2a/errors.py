"""Why a packet gave no event: one error with the kinds that the adapter's contract names."""

from __future__ import annotations

from typing import Literal

from labaudit.errors import LabauditError

ErrorKind = Literal[
    "config", "measurement", "infrastructure", "unsupported_protocol_version", "strict_lossiness_violation"
]
_EXIT_CODES: dict[str, int] = {"config": 2, "infrastructure": 4}


class AdapterError(LabauditError):
    """A packet, an option or the store of raw payloads failed; nothing was emitted.

    `is_json` is False when the bytes are no JSON at all: that ends with exit code 2, a broken contract with 1.
    """

    def __init__(self, kind: ErrorKind, message: str, *, where: str = "", hint: str = "", is_json: bool = True) -> None:
        super().__init__(message, where=where, hint=hint)
        self.kind: ErrorKind = kind
        self.message = message
        self.exit_code = _EXIT_CODES.get(kind, 1) if is_json else 2

    def as_error_object(self) -> dict[str, object]:
        """`{"error_kind": ..., "message": ...}`, as a program reads it."""
        return {"error_kind": self.kind, "message": self.message}
