"""The egress self-test on a real engine: lends it canaries, a sandbox like a trial's, and an unrestricted place.

The sandbox under test is opened by the engine exactly as a trial's is. The policy under test is the experiment's own
with one name of a canary added, so that there is something to reach and something to be refused.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self, cast

from labaudit.engines.protocol import Engine, Limits, NetworkMode, NetworkSpec, SandboxLabels, SandboxSpec
from labaudit.errors import BadInput
from labaudit.network.enforcer import EnforcementState
from labaudit.network.policy import EgressPolicy
from labaudit.network.self_test.host_canary import HostCanary
from labaudit.network.self_test.run import (
    CanaryPoint,
    EgressSelfTest,
    Execute,
    Executed,
    ProxiedPair,
    SelfTestOutcome,
    run_here,
)

_MEANS_OF_NONE = {"docker": "docker_none", "bubblewrap": "bubblewrap_netns"}
_LIMITS = Limits(memory_mb=256, pids=256)


class Canaries(Protocol):
    """What an engine lends for the test, alive until closed."""

    @property
    def unrestricted(self) -> Execute: ...

    @property
    def pair(self) -> ProxiedPair: ...

    @property
    def networks(self) -> tuple[str, ...]:
        """Where the canary's name leads, for the policy's allowed_networks."""

    def points(self) -> tuple[CanaryPoint, ...]: ...

    def arrivals(self) -> Iterable[str]: ...

    def allowlist_engine(self) -> Engine:
        """The engine under test, with its proxies placed so that they can reach the canary."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@dataclass(frozen=True)
class _Ended:
    exit_code: int | None
    stdout: bytes


@dataclass
class ProbedSandbox:
    """Runs programs in a sandbox as a trial would get it, and keeps what the proxy logged meanwhile."""

    engine: Engine
    network: NetworkSpec
    events: tuple[bytes, ...] = field(default=())

    def __call__(self, command: tuple[str, ...], seconds: float) -> Executed:
        labels = SandboxLabels("egress-self-test", secrets.token_hex(4))
        image = self.engine.resolve_image(None).id
        spec = SandboxSpec(image, command, labels, limits=_LIMITS, network=self.network, timeout_s=seconds, grace_s=1.0)
        sandbox = self.engine.open(spec)
        try:
            sandbox.start()
            result = sandbox.wait()
        finally:
            sandbox.remove()
        self.events += result.network.events
        return _Ended(result.exit_code, result.stdout.rendered())


class HostCanaries:
    """Canaries of an engine without a daemon: a listener on this machine, which is the unrestricted place too."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._host = engine, HostCanary()
        self.unrestricted: Execute = run_here
        self.networks: tuple[str, ...] = ("127.0.0.0/8", "::1/128")
        port = self._host.port
        self.pair = ProxiedPair("host", ("localhost", port), ("denied.localhost", port))

    def points(self) -> tuple[CanaryPoint, ...]:
        return self._host.points()

    def arrivals(self) -> list[str]:
        return self._host.tokens()

    def allowlist_engine(self) -> Engine:
        return self._engine

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._host.close()


def canaries_of(engine: Engine) -> Canaries:
    """The canaries that fit an engine."""
    if engine.name == "docker":
        from labaudit.engines.docker.canaries import DockerCanaries
        from labaudit.engines.docker.engine import DockerEngine

        return DockerCanaries(cast("DockerEngine", engine))
    return HostCanaries(engine)


def run_egress_test(
    engine: Engine,
    mode: NetworkMode = "allowlist_enforced",
    *,
    allowed_hosts: tuple[str, ...] = (),
    allowed_networks: tuple[str, ...] = (),
    store: Callable[[bytes], str],
) -> SelfTestOutcome:
    """Attacks a sandbox of this engine and judges what both sides saw. Needs no internet."""
    if engine.name == "process" or mode == "full":
        raise BadInput(f"there is nothing to test: {engine.name} with network {mode} confines no traffic")
    with canaries_of(engine) as canaries:
        network = NetworkSpec("none")
        if mode == "allowlist_enforced":
            host, port = canaries.pair.allowed
            network = NetworkSpec(
                mode, (*allowed_hosts, f"{host}:{port}"), (*allowed_networks, *canaries.networks), pooled=False
            )
        return attack(canaries, network, store)


def attack(
    canaries: Canaries, network: NetworkSpec, store: Callable[[bytes], str], engine: Engine | None = None
) -> SelfTestOutcome:
    """The test of one kind of network, with canaries that are already there."""
    listed = network.mode == "allowlist_enforced"
    under_test = engine or canaries.allowlist_engine()
    sandbox = ProbedSandbox(under_test, network)
    test = EgressSelfTest(
        under_test.name,
        sandbox,
        canaries.unrestricted,
        canaries.points(),
        canaries.arrivals,
        store,
        proxied=canaries.pair if listed else None,
        proxy_events=lambda: sandbox.events,
    )
    means = "unix_socket_proxy" if listed else _MEANS_OF_NONE.get(under_test.name, "unknown")
    state = EnforcementState(network.mode, means, shares_network=False)
    return test.run(EgressPolicy.asked(network) if listed else None, state)
