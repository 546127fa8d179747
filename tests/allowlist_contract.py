"""What an allowlist promises to an experiment, end to end on a real engine; docker and bubblewrap inherit the tests.

Each is seen by three witnesses: what an agent was told inside, what the proxy logged, and what arrived at an origin
that the test made. The attack list itself is in `network_attack_contract.py`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from labaudit.engines.protocol import Engine, NetworkSpec, SandboxResult
from labaudit.network.policy import machine_addresses
from labaudit.network.self_test.host_canary import HostCanary
from labaudit.records.schema_registry import validate
from tests.engine_contract import opened
from tests.network_lab import certificate

AGENT = Path(__file__).with_name("allowlist_agent.py").read_text()
ORIGIN = Path(__file__).with_name("allowlist_origin.py").read_text()


def machine_hosts() -> tuple[str, ...]:
    """The machine's IPv4 addresses beyond loopback: its own, and the gateway of every bridge."""
    found = [text.partition("/")[0] for text in machine_addresses() if ":" not in text]
    return tuple(address for address in found if not address.startswith("127."))


@dataclass
class Internet:
    """Origins that a test made, the name that leads to them, and an engine whose proxies can reach them."""

    engine: Engine
    name: str
    http: int
    tls: int
    networks: tuple[str, ...]
    address: str
    """Where the origin would answer without a name, were there a way."""
    log: Path
    hosts: tuple[str, ...] = ()
    """Addresses of the machine itself, as a sandbox of this engine might try them."""
    bridge: str = ""
    """The engine's network that the origins are on, where there is one."""

    def arrived(self) -> str:
        """All that the origins noted."""
        return self.log.read_text() if self.log.exists() else ""

    def policy(self, **more: Any) -> NetworkSpec:
        hosts = (f"{self.name}:{self.http}", f"{self.name}:{self.tls}")
        return NetworkSpec("allowlist_enforced", hosts, self.networks, **more)

    def send(self, tries: list[dict[str, Any]], network: NetworkSpec) -> tuple[dict[str, Any], SandboxResult]:
        """One sandbox, one agent."""
        with opened(self.engine, "python3", "/in/agent.py", "/in/tries.json", network=network) as sandbox:
            Path(sandbox.host.input, "agent.py").write_text(AGENT)
            Path(sandbox.host.input, "tries.json").write_text(json.dumps(tries))
            sandbox.start()
            result = sandbox.wait()
        assert result.exit_code == 0, result.stderr.rendered()
        return json.loads(result.stdout.rendered()), result


@dataclass
class Trip:
    """What came of one agent's tries."""

    told: dict[str, Any]
    result: SandboxResult
    arrived: str

    def events(self, **wanted: object) -> list[dict[str, Any]]:
        rows = [json.loads(line) for line in self.result.network.events]
        return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def tries_of(net: Internet) -> list[dict[str, Any]]:
    here, safe = f"http://{net.name}:{net.http}", f"https://{net.name}:{net.tls}"
    ca = {"ca": certificate(net.name)[0].read_text()}
    return [
        {"id": "variables", "do": "variables"},
        {"id": "plain", "do": "fetch", "url": f"{here}/plain"},
        {"id": "tls", "do": "fetch", "url": f"{safe}/tls", **ca},
        {"id": "inner", "do": "fetch", "url": f"{safe}/inner", "headers": {"Host": "inner.test"}, **ca},
        {"id": "denied", "do": "fetch", "url": "http://evil.test/denied"},
        {"id": "denied-tls", "do": "fetch", "url": "https://evil.test/denied"},
        {"id": "denied-port", "do": "fetch", "url": f"http://{net.name}:1/denied"},
        {"id": "redirect", "do": "fetch", "url": f"{here}/redirect/evil.test:{net.http}"},
        {"id": "bypass-name", "do": "fetch", "url": f"{here}/bypass", "bypass": True},
        {"id": "bypass-address", "do": "fetch", "url": f"http://{net.address}:{net.http}/bypass", "bypass": True},
        {"id": "direct", "do": "tcp", "address": net.address, "port": net.tls, "token": "GET /bypass HTTP/1.0\r\n\r\n"},
    ]


class AllowlistContract:
    """A subclass gives the class-scoped fixture `internet`."""

    @pytest.fixture(scope="class")
    @classmethod
    def trip(cls, internet: Internet) -> Trip:
        told, result = internet.send(tries_of(internet), internet.policy())
        return Trip(told, result, internet.arrived())

    def test_an_allowed_host_is_reached_by_a_plain_client_and_logged(self, trip: Trip, internet: Internet) -> None:
        assert trip.told["variables"]["http_proxy"] == "http://127.0.0.1:3128"
        assert (trip.told["plain"]["status"], trip.told["plain"]["text"]) == (200, "origin")
        assert "GET /plain HTTP/1.1" in trip.arrived
        events = trip.events(decision="allow", port=internet.http)
        assert {event["rule"] for event in events} == {f"allow:{internet.name}:{internet.http}"}
        assert all(event["bytes_up"] > 0 and event["bytes_down"] > 0 for event in events)

    def test_an_allowed_host_is_reached_by_tls_that_is_checked_inside(self, trip: Trip, internet: Internet) -> None:
        assert (trip.told["tls"]["status"], trip.told["tls"]["text"]) == (200, "origin")
        assert "GET /tls HTTP/1.1" in trip.arrived
        assert {event["sni"] for event in trip.events(decision="allow", port=internet.tls)} == {internet.name}

    def test_a_denied_host_is_refused_with_a_logged_reason(self, trip: Trip, internet: Internet) -> None:
        assert (trip.told["denied"]["status"], trip.told["denied"]["rule"]) == (403, "host_not_allowed")
        assert "403" in trip.told["denied-tls"]["text"]
        assert trip.told["denied-port"]["rule"] == "port_not_allowed"
        assert {event["reason"] for event in trip.events(host="evil.test", decision="block")} == {
            "evil.test is not on the list"
        }
        assert len(trip.events(rule="port_not_allowed")) == 1
        assert "/denied" not in trip.arrived

    def test_a_redirect_to_a_denied_host_is_refused(self, trip: Trip, internet: Internet) -> None:
        assert trip.told["redirect"]["rule"] == "host_not_allowed"
        assert "GET /redirect/" in trip.arrived

    def test_a_client_that_ignores_the_proxy_has_no_way_at_all(self, trip: Trip) -> None:
        for key in ("bypass-name", "bypass-address", "direct"):
            assert "error" in trip.told[key], (key, trip.told[key])
        assert "/bypass" not in trip.arrived

    def test_the_inner_host_passes_which_is_the_stated_residual(self, trip: Trip) -> None:
        assert trip.told["inner"]["status"] == 200
        assert "Host: inner.test" in trip.arrived
        assert any("Host header inside TLS" in note for note in trip.result.network.notes)

    def test_the_evidence_names_mode_means_and_risk(self, trip: Trip) -> None:
        network = trip.result.network
        assert (network.mode_requested, network.mode_effective) == ("allowlist_enforced", "allowlist_enforced")
        assert (network.enforcement, network.bypass_risk) == ("unix_socket_proxy", "residual")
        assert (network.proxy_alive_at_end, network.pooled) == (True, False)
        assert trip.result.observed.interfaces == ()
        events = trip.events()
        assert [event["seq"] for event in events] == list(range(len(events)))
        assert all(validate("network_event_v1", event) == [] for event in events)

    def test_a_name_that_leads_into_the_machine_is_refused(self, internet: Internet) -> None:
        canary = HostCanary()
        try:
            words = f"GET http://localhost:{canary.port}/{'a' * 32} HTTP/1.1\r\n\r\n"
            network = NetworkSpec("allowlist_enforced", (f"localhost:{canary.port}",))
            told, result = internet.send([{"id": "inward", "do": "raw", "words": words}], network)
            assert canary.tokens() == []
        finally:
            canary.close()
        assert told["inward"]["rule"] == "address_not_allowed"
        assert json.loads(result.network.events[0])["rule"] == "address_not_allowed"

    def test_pooled_trials_share_a_proxy_and_nothing_of_its_log(self, internet: Internet) -> None:
        policy, seen = internet.policy(pooled=True, pool_key="worker-1"), []
        for name in ("one", "two"):
            words = f"GET http://{name}.test/ HTTP/1.1\r\n\r\n"
            _, result = internet.send([{"id": "x", "do": "raw", "words": words}], policy)
            assert result.network.pooled
            seen.append([(json.loads(line)["host"], json.loads(line)["seq"]) for line in result.network.events])
        assert seen == [[("one.test", 0)], [("two.test", 0)]]
