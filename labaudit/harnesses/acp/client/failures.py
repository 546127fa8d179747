"""The ways in which an agent fails, each with a label that goes into the evidence."""

from __future__ import annotations

from typing import Literal

from labaudit.errors import EnvironmentLacks

FailureKind = Literal[
    "not_started",
    "exited",
    "timeout",
    "rpc_error",
    "auth_required",
    "protocol_version",
    "bad_answer",
    "not_advertised",
    "flood",
    "deaf",
    "unrecorded",
    "closed",
]


class AgentFailure(EnvironmentLacks):
    """An agent that did not do its part; `kind` is the label, `code` the JSON-RPC code where there was one."""

    def __init__(
        self, kind: FailureKind, what: str, *, where: str = "", hint: str = "", code: int | None = None
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.kind: FailureKind = kind
        self.code = code
