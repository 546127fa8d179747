"""The allowlist on bubblewrap: the internet is a server of this test on the machine's own loopback."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from labaudit.engines.bubblewrap.engine import BubblewrapEngine
from tests.allowlist_contract import ORIGIN, AllowlistContract, Internet, machine_hosts
from tests.network_attack_contract import NetworkAttackContract
from tests.network_lab import certificate

pytestmark = pytest.mark.bubblewrap


@pytest.fixture(scope="class")
def internet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Internet]:
    log = tmp_path_factory.mktemp("internet") / "log"
    cert, key = (path.read_text() for path in certificate("localhost"))
    command = [sys.executable, "-c", ORIGIN, "0", "0", cert, key, str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as origin, BubblewrapEngine.detect() as engine:
        assert origin.stdout is not None
        _, http, tls = origin.stdout.readline().split()
        try:
            networks = ("127.0.0.1/32", "::1/128")
            yield Internet(engine, "localhost", int(http), int(tls), networks, "127.0.0.1", log, machine_hosts())
        finally:
            origin.kill()


class TestTheAllowlist(AllowlistContract):
    pass


class TestNetworkAttacks(NetworkAttackContract):
    pass
