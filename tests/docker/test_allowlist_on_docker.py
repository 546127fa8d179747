"""The allowlist on docker: the internet is a container of this test on a bridge of its own."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from labaudit.engines.docker.companion import Companion
from labaudit.engines.docker.companion_bodies import NOBODY, canary_body
from labaudit.engines.docker.creation import bind
from labaudit.engines.docker.engine import DockerEngine
from labaudit.engines.host.ownership import labels_of
from labaudit.engines.protocol import NetworkSpec, SandboxLabels
from labaudit.network.self_test.host_canary import HostCanary
from tests.allowlist_contract import ORIGIN, AllowlistContract, Internet, machine_hosts
from tests.engine_contract import opened
from tests.network_attack_contract import NetworkAttackContract
from tests.network_lab import certificate

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("docker")]

NAME = "allowed.internet"
HTTP, TLS = 8080, 8443


@pytest.fixture(scope="class")
def internet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Internet]:
    folder = tmp_path_factory.mktemp("internet")
    for parent in (folder, folder.parent, folder.parent.parent):
        parent.chmod(0o755)
    os.chown(folder, *NOBODY)
    labels = labels_of(SandboxLabels("allowlist-test", secrets.token_hex(4)), "canary")
    network = f"labaudit-test-internet-{secrets.token_hex(4)}"
    with ExitStack() as stack:
        engine = stack.enter_context(DockerEngine.connect())
        client = engine.client
        made = client.create_network(network, driver="bridge", labels=labels)["Id"]
        stack.callback(client.remove_network, made)
        subnets = tuple(str(row["Subnet"]) for row in client.inspect_network(made)["IPAM"]["Config"])
        cert, key = (path.read_text() for path in certificate(NAME))
        command = ("python3", "-c", ORIGIN, str(HTTP), str(TLS), cert, key, "/log/log")
        body = canary_body(engine.resolve_image(None).id, command, network, (NAME, "denied.internet"), labels)
        body["HostConfig"]["Mounts"] = [bind(folder, "/log", read_only=False)]
        origin = Companion(client, body, "origin", ready=b"ready ")
        stack.callback(origin.remove)
        seen = client.inspect_container(origin.container)["NetworkSettings"]["Networks"][network]
        inner = engine.with_egress_network(network)
        stack.callback(inner.close_networks)
        address, log = str(seen["IPAddress"]), folder / "log"
        yield Internet(inner, NAME, HTTP, TLS, subnets, address, log, machine_hosts(), network)


class TestTheAllowlist(AllowlistContract):
    pass


class TestNetworkAttacks(NetworkAttackContract):
    pass


ASTRAY = {
    "b47-loopback": "127.0.0.5", "b48-metadata": "169.254.169.254", "b49-cgnat": "100.64.0.1",
    "b49-nat64": "64:ff9b::7f00:1", "b49-6to4": "2002:7f00:1::1", "b25-mapped": "::ffff:127.0.0.5",
    "private": "10.0.0.1",
}  # fmt: skip


class TestNamesThatLeadAstray:
    """The sidecar's own table of names stands in for the name service; everything else is as in a trial."""

    def test_b8_and_b47_to_b49_an_allowed_name_that_leads_inside_is_refused(
        self, internet: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        inside = ASTRAY | {f"b8-host-{number}": address for number, address in enumerate(internet.hosts)}
        table = tuple(f"{name}.test:{address}" for name, address in inside.items())
        monkeypatch.setattr("labaudit.engines.docker.sidecar.names_of_host", lambda hosts: table)
        canary = HostCanary()
        try:
            hosts = tuple(f"{name}.test:{canary.port}" for name in inside)
            tries = [
                {"id": name, "do": "raw", "words": f"GET http://{name}.test:{canary.port}/{'8' * 32} HTTP/1.1\r\n\r\n"}
                for name in inside
            ]
            told, result = internet.send(tries, NetworkSpec("allowlist_enforced", hosts))
            assert {name: value["rule"] for name, value in told.items()} == dict.fromkeys(inside, "address_not_allowed")
            assert canary.tokens() == []
        finally:
            canary.close()
        events = [json.loads(line) for line in result.network.events]
        assert {event["address"] for event in events} == {None}
        assert len(events) == len(inside)


class TestAnAnswerThatChanges:
    """B50: the name service of the engine itself answers, and what stands behind the name is exchanged."""

    NAME = "b50-rebinding.internet"

    def server(self, internet: Internet, trial: str) -> tuple[Companion, str]:
        """A server under the name, and its address; it answers whatever it is asked."""
        engine = internet.engine
        assert isinstance(engine, DockerEngine)
        labels = labels_of(SandboxLabels("allowlist-test", trial), "canary")
        cert, key = (path.read_text() for path in certificate(NAME))
        command = ("python3", "-c", ORIGIN, str(HTTP), str(TLS), cert, key, "/dev/null")
        body = canary_body(engine.resolve_image(None).id, command, internet.bridge, (self.NAME,), labels)
        made = Companion(engine.client, body, "server", ready=b"ready ")
        seen = engine.client.inspect_container(made.container)["NetworkSettings"]["Networks"]
        return made, str(seen[internet.bridge]["IPAddress"])

    def test_b50_each_connection_asks_once_and_one_bad_address_spoils_the_answer(self, internet: Internet) -> None:
        source = (
            "import socket, sys\n"
            "for _ in sys.stdin:\n"
            "    with socket.create_connection(('127.0.0.1', 3128), 10) as s:\n"
            f"        s.sendall(b'GET http://{self.NAME}:{HTTP}/b50 HTTP/1.1\\r\\n\\r\\n')\n"
            "        print(s.recv(100).split()[1].decode(), flush=True)\n"
        )
        with ExitStack() as stack:
            good, address = self.server(internet, "good")
            stack.callback(good.remove)
            network = NetworkSpec("allowlist_enforced", (f"{self.NAME}:{HTTP}",), (f"{address}/32",))
            sandbox = stack.enter_context(
                opened(internet.engine, "python3", "-c", source, network=network, attach=True, timeout_s=60.0)
            )
            sandbox.start()

            def asked() -> bytes:
                sandbox.streams.stdin.write(b"\n")
                sandbox.streams.stdin.flush()
                return sandbox.streams.stdout.readline().strip()

            answers = [asked()]
            bad, _ = self.server(internet, "bad")
            stack.callback(bad.remove)
            answers.append(asked())  # the name now leads to both
            good.remove()
            answers.append(asked())  # and now to the other one alone
            sandbox.streams.stdin.close()
            result = sandbox.wait()
        assert answers == [b"200", b"403", b"403"]
        events = [json.loads(line) for line in result.network.events]
        allowed = f"allow:{self.NAME}:{HTTP}"
        assert [event["rule"] for event in events] == [allowed, "address_not_allowed", "address_not_allowed"]
        assert [event["address"] for event in events] == [address, None, None]
