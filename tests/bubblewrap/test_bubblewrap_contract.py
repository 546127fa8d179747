"""The bubblewrap engine keeps the contract that every engine keeps."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from labaudit.engines.bubblewrap.engine import BubblewrapEngine
from labaudit.engines.bubblewrap.sandbox import BubblewrapSandbox
from labaudit.engines.protocol import Engine, Sandbox
from labaudit.network.local_proxy import NetworkProxy
from tests.confinement_contract import ConfinementContract
from tests.engine_contract import EngineContract

pytestmark = pytest.mark.bubblewrap


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with BubblewrapEngine.detect() as made:
        yield made


class TestTheContract(EngineContract):
    pass


class TestConfinement(ConfinementContract):
    def kill_proxy(self, sandbox: Sandbox) -> None:
        assert isinstance(sandbox, BubblewrapSandbox)
        assert sandbox.lease is not None
        assert isinstance(sandbox.lease.proxy, NetworkProxy)
        os.kill(sandbox.lease.proxy.pid, signal.SIGKILL)
