"""The network namespace that a trial joins: a holder container without a network, and the forwarders in it.

The holder is made with network `none`; our own forwarder runs in it, binds loopback ports and leads each to one unix
socket. The trial joins the holder's network namespace: no subnet, gateway, packet filter or DNS to get wrong.
"""

from __future__ import annotations

import secrets
import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import docker

from labaudit.engines.docker.companion import Companion
from labaudit.engines.docker.companion_bodies import holder_body
from labaudit.engines.docker.sidecar import SidecarProxy, SidecarSetting
from labaudit.engines.host.ownership import labels_of
from labaudit.engines.host.surfaces import owned_folder, remove_folder
from labaudit.engines.spec import PROXY_PORT, SandboxSpec
from labaudit.errors import BadInput
from labaudit.network.lease import ProxyLease, ProxyPool
from labaudit.network.policy import EgressPolicy
from labaudit.network.program import write_program


@dataclass
class JoinedNetwork:
    """A holder's namespace as one trial uses it."""

    holder: Companion
    lease: ProxyLease | None
    shared: bool
    """The holder belongs to a pooled proxy and outlives the trial."""

    @property
    def container(self) -> str:
        """The container whose namespace the trial joins."""
        return self.holder.container

    def alive(self) -> bool:
        """Whether both the holder's forwarder and the proxy behind it still run."""
        return self.holder.alive() and (self.lease is None or self.lease.alive())

    def release(self) -> None:
        """Ends the trial's use."""
        if not self.shared:
            self.holder.remove()
        if self.lease is not None:
            self.lease.release()


class TrialNetworks:
    """Makes and keeps the companions of one engine."""

    def __init__(
        self, client: docker.APIClient, image: Callable[[], str], egress_network: str, names: tuple[str, ...] = ()
    ) -> None:
        self._client, self._image, self._egress_network, self._names = client, image, egress_network, names
        self._pool = ProxyPool()
        self._program: Path | None = None
        self._lock = threading.Lock()

    def open(self, spec: SandboxSpec, ports: dict[int, Path], folder: Path) -> JoinedNetwork | None:
        """What the trial joins; None where it needs nothing but its own empty namespace."""
        for port, path in ports.items():
            _check_socket(port, path)
        if spec.network.mode != "allowlist_enforced":
            return JoinedNetwork(self._holder(spec, ports), None, False) if ports else None
        lease = self._pool.lease(spec.network, lambda policy: self._proxy(spec, policy, folder))
        try:
            return self._joined(spec, ports, lease)
        except BaseException:
            lease.release()
            raise

    def _joined(self, spec: SandboxSpec, ports: dict[int, Path], lease: ProxyLease) -> JoinedNetwork:
        ports = {**ports, PROXY_PORT: lease.socket}
        proxy = lease.proxy
        # the sockets of a trial's own services differ from trial to trial, so such a trial needs a holder of its own
        if not isinstance(proxy, SidecarProxy) or not lease.pooled or len(ports) > 1:
            return JoinedNetwork(self._holder(spec, ports), lease, False)
        if proxy.holder is None or not proxy.holder.alive():
            proxy.holder = self._holder(spec, ports)
        return JoinedNetwork(proxy.holder, lease, True)

    def _proxy(self, spec: SandboxSpec, policy: EgressPolicy, folder: Path) -> SidecarProxy:
        setting = SidecarSetting(self._client, self._image(), self._copied_program(), self._egress_network, self._names)
        labels = labels_of(spec.labels, "proxy")
        if spec.network.pooled:
            return SidecarProxy(setting, policy, owned_folder("proxy") / "proxy", labels, owns=True)
        return SidecarProxy(setting, policy, folder / "proxy", labels, owns=False)

    def _holder(self, spec: SandboxSpec, ports: dict[int, Path]) -> Companion:
        body = holder_body(self._image(), self._copied_program(), ports, labels_of(spec.labels, "holder"))
        return Companion(self._client, body, "network holder")

    def _copied_program(self) -> Path:
        with self._lock:
            if self._program is None:
                place = owned_folder("program") / secrets.token_hex(4)
                write_program(place)
                self._program = place
            return self._program

    def close(self) -> None:
        """Ends pooled proxies and deletes the copy of the programs."""
        self._pool.close()
        with self._lock:
            if self._program is not None:
                remove_folder(self._program.parent)
            self._program = None


def _check_socket(port: int, path: Path) -> None:
    try:
        there = stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        there = False
    if not there:
        raise BadInput(f"the service for port {port} is no unix socket", where=str(path))
