"""Which loopback ports of a sandbox lead to which unix socket. Pure."""

from __future__ import annotations

from pathlib import Path

from labaudit.engines.spec import PROXY_PORT, SandboxSpec
from labaudit.errors import BadInput


def forwarded_ports(spec: SandboxSpec) -> dict[int, Path]:
    """Port to socket of the spec's services. BadInput where two ask for one port, or no namespace could hold them."""
    taken = [service.port for service in spec.services]
    if spec.network.mode == "allowlist_enforced":
        taken.append(PROXY_PORT)
    if len(set(taken)) != len(taken):
        raise BadInput("two services ask for the same port in the sandbox", where="services")
    if taken and spec.network.mode == "full":
        raise BadInput("loopback services need a sandbox with a network of its own", where="runtime.network.mode")
    return {service.port: service.socket for service in spec.services}
