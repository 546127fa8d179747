"""The kinds of value that records are made of: digests, references, times, counts and enumerations.

Each type accepts exactly what the schemas accept for it. JSON has one kind of number, so a whole number may arrive as
`3.0`; it is taken as 3, and `true` is never a number.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, Strict, StringConstraints

from labaudit.records.rfc3339 import is_rfc3339

Item = TypeVar("Item")


def whole(value: object) -> object:
    """3.0 as 3, and anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _rfc3339(value: str) -> str:
    if not is_rfc3339(value):
        raise ValueError("is no RFC 3339 time with an offset, such as 2026-11-18T09:30:00Z")
    return value


# Text.
Text = Annotated[str, StringConstraints(min_length=1)]
DigestText = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Hex64 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
ArtifactRef = Annotated[str, StringConstraints(pattern=r"^artifact://sha256/[0-9a-f]{64}$")]
GitCommit = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
Timestamp = Annotated[str, AfterValidator(_rfc3339)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+$", max_length=200)]
EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]
MetricSource = Annotated[str, StringConstraints(pattern=r"^(harness|framework|imported|evaluator:.+)$")]

# Numbers.
Count = Annotated[int, BeforeValidator(whole), Field(ge=0)]
Positive = Annotated[int, BeforeValidator(whole), Field(ge=1)]
Number = int | float
NotNegative = Annotated[int, Field(ge=0)] | Annotated[float, Field(ge=0)]
Scalar = bool | int | float | str | None

# Containers. A JSON array becomes a tuple, so that a frozen record stays frozen.
Many = Annotated[tuple[Item, ...], Strict(False)]
JsonObject = dict[str, Any]
Command = Annotated[tuple[Text, ...], Strict(False), Field(min_length=1)]
Fingerprint = Text | JsonObject

# Enumerations that several files share.
IntegrationLevel = Literal["cli_basic", "cli_events", "otel", "sdk_control", "sdk_full"]
SanitizationProfile = Literal["replay_strict_v2", "hermetic_functional_v2", "perf_benchmark_v2"]
EvidenceSource = Literal["framework_events", "hooks", "traces", "sdk", "network_proxy", "imported"]
Outcome = Literal["success", "failure", "missing", "error"]
NetworkMode = Literal["none", "full", "allowlist_enforced"]
Enforcement = Literal[
    "docker_none",
    "netns_iptables",
    "sidecar_proxy",
    "unknown",
    "none",
    "bubblewrap_netns",
    "unix_socket_proxy",
]
BypassRisk = Literal["none", "residual", "high", "unknown"]
ControlAction = Literal["continue", "stop", "checkpoint"]
RedactionMode = Literal["store", "hash", "drop"]
TracingMode = Literal["none", "otlp", "manifest"]
EvidenceOrigin = Literal["local", "worker", "imported"]
Isolation = Literal["sealed", "bounded", "leaky", "not_observed"]
Replay = Literal["strict", "checkpointed", "best_effort", "none", "not_observed"]
Interpretability = Literal["step", "turn", "output", "not_observed"]
Comparability = Literal["paired", "qualified", "descriptive", "not_comparable", "not_observed"]
Provenance = Literal["attested", "signed", "hashed", "none", "not_observed"]
MissingCause = Literal["missing", "error", "absent", "invalid", "nan"]
