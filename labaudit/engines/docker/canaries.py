"""Canaries on a Docker-compatible engine: one container on a bridge of its own, one listener on the host.

The unrestricted place is a container on the canary's bridge: it reaches the canary directly and the host through the
bridge's gateway, so it shows that both are alive on the paths that a leak would take.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from labaudit.engines.docker.api import BROKEN, calling
from labaudit.engines.docker.companion import Companion, run_once
from labaudit.engines.docker.companion_bodies import NOBODY, canary_body
from labaudit.engines.docker.creation import bind
from labaudit.engines.docker.engine import DockerEngine
from labaudit.engines.host.ownership import labels_of
from labaudit.engines.host.surfaces import owned_folder, remove_folder
from labaudit.engines.protocol import ExecResult
from labaudit.engines.spec import SandboxLabels
from labaudit.network.self_test import canary
from labaudit.network.self_test.host_canary import HostCanary
from labaudit.network.self_test.run import CanaryPoint, ProxiedPair

NAME = "bridge"
PORT = 8099
_LOG = "/labaudit/log"


class DockerCanaries:
    """Made by entering, gone by leaving."""

    def __init__(self, engine: DockerEngine) -> None:
        self._engine, self._client = engine, engine.client
        self._labels = labels_of(SandboxLabels("egress-self-test", secrets.token_hex(4)), "canary")
        token = secrets.token_hex(4)
        self.network = f"labaudit-canary-{token}"
        self._names = (f"allowed-{token}.canary", f"denied-{token}.canary")
        self.pair = ProxiedPair(NAME, (self._names[0], PORT), (self._names[1], PORT))
        self.networks: tuple[str, ...] = ()
        self._stack = ExitStack()
        self.host: HostCanary | None = None
        self.container = ""

    def __enter__(self) -> Self:
        try:
            self._make()
        except BaseException:
            self._stack.close()
            raise
        return self

    def _make(self) -> None:
        with calling("make the canary's network"):
            made = self._client.create_network(self.network, driver="bridge", labels=self._labels)
            self._stack.callback(self._remove_network, made["Id"])
            facts = self._client.inspect_network(made["Id"])["IPAM"]["Config"]
        self._gateways = [str(row["Gateway"]).partition("/")[0] for row in facts if "." in str(row.get("Gateway"))]
        self.networks = tuple(str(row["Subnet"]) for row in facts)
        folder = owned_folder("canary")
        self._stack.callback(remove_folder, folder)
        self._log = folder / "log"
        self._log.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(self._log, *NOBODY)
        source = Path(canary.__file__).read_text()
        command = ("python3", "-c", source, "0.0.0.0", str(PORT), f"{_LOG}/arrivals")  # noqa: S104, its own bridge only
        body = canary_body(self._image(), command, self.network, self._names, self._labels)
        body["HostConfig"]["Mounts"] = [bind(self._log, _LOG, read_only=False)]
        made_canary = Companion(self._client, body, "canary", ready=b"ready ")
        self._stack.callback(made_canary.remove)
        self.container = made_canary.container
        with calling("look at the canary"):
            seen = self._client.inspect_container(made_canary.container)["NetworkSettings"]["Networks"]
        self.address = str(seen[self.network]["IPAddress"])
        self.host = HostCanary()
        self._stack.callback(self.host.close)

    def _image(self) -> str:
        return self._engine.resolve_image(None).id

    def _remove_network(self, network: str) -> None:
        with suppress(*BROKEN):
            self._client.remove_network(network)

    def unrestricted(self, command: tuple[str, ...], seconds: float) -> ExecResult:
        """Runs a program on the canary's own bridge."""
        return self.on_network(self.network)(command, seconds)

    def on_network(self, network: str) -> Callable[[tuple[str, ...], float], ExecResult]:
        """A place on any network of the engine: for showing that the test finds what leaks."""
        return lambda command, seconds: run_once(
            self._client, canary_body(self._image(), command, network, (), self._labels), seconds
        )

    def points(self) -> tuple[CanaryPoint, ...]:
        """The canary's address by TCP and UDP, and every address of the host."""
        assert self.host is not None, "points exist once the canaries do"
        return (
            CanaryPoint(NAME, "tcp", self.address, PORT),
            CanaryPoint(NAME, "udp", self.address, PORT),
            *self.host.points(reachable=self._gateways),
        )

    def arrivals(self) -> list[str]:
        """Tokens that either canary noted."""
        assert self.host is not None, "arrivals exist once the canaries do"
        try:
            lines = (self._log / "arrivals").read_bytes().splitlines()
        except OSError:
            lines = []
        return [*(str(json.loads(line)["token"]) for line in lines), *self.host.tokens()]

    def allowlist_engine(self) -> DockerEngine:
        """The same engine with its proxies on the canary's bridge, where the canary has its names."""
        # by address: not every engine has a name service on its bridges
        names = tuple(f"{name}:{self.address}" for name in self._names)
        other = self._engine.with_egress_network(self.network, names)
        self._stack.callback(other.close_networks)
        return other

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
