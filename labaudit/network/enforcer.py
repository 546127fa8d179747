"""From a network mode to what an engine must put in place for it: interfaces, loopback ports, variables. Pure.

This is the request. Whether it held is observed from inside the sandbox and shown by the self-test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from labaudit.errors import PolicyUnmet
from labaudit.network.policy import EgressPolicy
from labaudit.network.program import proxy_environment

PROXY_PORT = 3128
Mode = Literal["none", "full", "allowlist_enforced"]


class ProxyHandle(Protocol):
    """A proxy or a lease on one."""

    @property
    def socket(self) -> Path: ...


@dataclass(frozen=True)
class EnforcementState:
    """What is to be in place. `enforcement` names the means, as state_inventory.json calls it once it was observed."""

    mode: Mode
    enforcement: str
    shares_network: bool
    forwards: Mapping[int, Path] = field(default_factory=dict)
    """Loopback port in the sandbox -> unix socket outside."""
    environment: Mapping[str, str] = field(default_factory=dict)


class NetworkEnforcer:
    """One engine's way to shut a network: `means_of_none` is what it calls a namespace with loopback alone."""

    def __init__(self, means_of_none: str) -> None:
        self._means_of_none = means_of_none

    def apply(self, mode: Mode, policy: EgressPolicy | None, proxy: ProxyHandle | None) -> EnforcementState:
        """The state for a mode. An allowlist without a policy or a proxy is an error, never an open network."""
        if mode == "full":
            return EnforcementState(mode, "none", shares_network=True)
        if mode == "none":
            return EnforcementState(mode, self._means_of_none, shares_network=False)
        if policy is None or proxy is None:
            raise PolicyUnmet(
                "allowlist_enforced needs a policy and a running proxy",
                where="runtime.network",
                hint="nothing else enforces an allowlist; use mode none, or full and be graded so",
            )
        forwards = {PROXY_PORT: proxy.socket}
        return EnforcementState(mode, "unix_socket_proxy", False, forwards, proxy_environment(PROXY_PORT))
