"""The docker engine keeps the contract that every engine keeps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from labaudit.engines.docker.engine import DockerEngine
from labaudit.engines.docker.sandbox import DockerSandbox
from labaudit.engines.docker.sidecar import SidecarProxy
from labaudit.engines.protocol import Engine, Sandbox
from tests.confinement_contract import ConfinementContract
from tests.engine_contract import EngineContract

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("docker")]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with DockerEngine.connect() as made:
        yield made


class TestTheContract(EngineContract):
    pass


class TestConfinement(ConfinementContract):
    def kill_proxy(self, sandbox: Sandbox) -> None:
        assert isinstance(sandbox, DockerSandbox)
        network = sandbox.network
        assert network is not None
        assert network.lease is not None
        assert isinstance(network.lease.proxy, SidecarProxy)
        sandbox.client.kill(network.lease.proxy.container)
