"""From what was seen of a sandbox's interfaces and proxy to the network mode that was really in force. Pure.

Options that were asked for play no part, except to name what was asked for.
"""

from __future__ import annotations

from typing import Literal

from labaudit.engines.observed import NotObserved, Observed
from labaudit.engines.result import NetworkEvidence
from labaudit.engines.spec import NetworkSpec

ENFORCEMENT_OF_NONE = {"docker": "docker_none", "bubblewrap": "bubblewrap_netns"}

Risk = Literal["none", "residual", "high", "unknown"]


def network_evidence(
    asked: NetworkSpec,
    observed: Observed,
    engine: str,
    *,
    proxied: bool = False,
    proxy_alive: bool | None = None,
    events: tuple[bytes, ...] = (),
) -> NetworkEvidence:
    """Mode, enforcement and bypass risk as observed; `proxied` means a proxy's socket led into the sandbox."""
    notes: list[str] = []
    mode, enforcement, risk = _in_force(observed, engine, proxied, notes)
    if asked.pooled and proxied:
        notes.append("the proxy is shared by the trials of one worker, one after another")
    return NetworkEvidence(
        mode_requested=asked.mode,
        mode_effective=mode,
        enforcement=enforcement,
        bypass_risk=risk,
        allowed_hosts=asked.allowed_hosts,
        pooled=asked.pooled and proxied,
        events=events,
        proxy_alive_at_end=proxy_alive,
        notes=tuple(notes),
    )


def _in_force(observed: Observed, engine: str, proxied: bool, notes: list[str]) -> tuple[str, str, Risk]:
    if isinstance(observed.interfaces, NotObserved):
        notes.append(f"interfaces were not observed: {observed.interfaces.reason}")
        return "full", "unknown", "unknown"
    if observed.interfaces:
        notes.append("interfaces beside the loopback: " + ", ".join(observed.interfaces))
        return "full", "none", "high"
    if observed.seccomp_mode != 2:
        # a vsock does not care about network namespaces; only the filter keeps it shut
        notes.append("no seccomp filter was seen, so sockets of other families are not ruled out")
    unfiltered = observed.seccomp_mode != 2
    if proxied:
        notes.append("residual: the Host header inside TLS to an allowed name is not visible to the proxy")
        return "allowlist_enforced", "unix_socket_proxy", "high" if unfiltered else "residual"
    return "none", ENFORCEMENT_OF_NONE.get(engine, "unknown"), "residual" if unfiltered else "none"
