"""The network part of the attack list, from inside a real sandbox; docker and bubblewrap inherit the tests.

One sandbox makes all tries; each test then looks at its own by three witnesses: what the agent was told, what the
proxy logged, and what arrived at origins and canaries that the test made. The numbers are those of the list.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from labaudit.network.self_test.host_canary import HostCanary
from tests.allowlist_contract import Internet, Trip
from tests.engine_contract import run
from tests.network_lab import certificate, client_hello

DENIED = "evil.test"
ALERT = "15030300020231"
"""The proxy's own TLS alert: access denied."""

REFUSED = [
    ("b23", "ip_literal"), ("b24-decimal", "ip_literal"), ("b24-hex", "ip_literal"), ("b24-octal", "ip_literal"),
    ("b24-short", "ip_literal"), ("b25-mapped", "ip_literal"), ("b25-bracketed", "ip_literal"),
    ("b26-before", "userinfo"), ("b26-after", "userinfo"),
    ("b27-suffix", "host_not_allowed"), ("b27-prefix", "host_not_allowed"),
    ("b28", "bad_line_end"), ("b30-idn", "bad_request_line"), ("b31", "port_not_allowed"), ("b32", "host_mismatch"),
    ("b33", "origin_form"), ("b40", "ambiguous_length"), ("b41", "ambiguous_length"), ("b42-lf", "bad_line_end"),
    ("b42-cr", "bad_line_end"), ("b43", "folded_header"), ("b44-large", "head_too_large"),
    ("b44-many", "too_many_headers"), ("b51-ftp", "scheme"), ("b51-https", "scheme"), ("b52", "upgrade"),
    ("b54", "bad_host"),
]  # fmt: skip


def through_the_proxy(net: Internet) -> list[dict[str, Any]]:
    """Cases 23 to 54. What must not arrive carries its own number in its path."""
    name, http, tls = net.name, net.http, net.tls
    packed = bytes(map(int, net.address.split(".")))
    number = int.from_bytes(packed, "big")

    def raw(key: str, words: str, **more: Any) -> dict[str, Any]:
        return {"id": key, "do": "raw", "words": words, **more}

    def get(key: str, host: str, headers: str = "", after: str = "") -> dict[str, Any]:
        return raw(key, f"GET http://{host}/{key} HTTP/1.1\r\n{headers}\r\n{after}")

    def connect(key: str, host: str, **more: Any) -> dict[str, Any]:
        return raw(key, f"CONNECT {host} HTTP/1.1\r\n\r\n", **more)

    here, tunnel = f"{name}:{http}", f"{name}:{tls}"
    ca = certificate(name)[0].read_text()
    second = f"GET http://{here}/b39-second HTTP/1.1\r\n\r\n"
    return [
        get("open", here),
        connect("b23", f"{net.address}:{tls}"),
        connect("b24-decimal", f"{number}:{tls}"),
        connect("b24-hex", f"0x{packed.hex()}:{tls}"),
        connect("b24-octal", f"0{number:o}:{tls}"),
        connect("b24-short", f"127.1:{tls}"),
        connect("b25-mapped", f"[::ffff:{net.address}]:{tls}"),
        connect("b25-bracketed", f"[::1]:{tls}"),
        get("b26-before", f"{name}@{net.address}:{http}"),
        get("b26-after", f"user:secret@{here}"),
        get("b27-suffix", f"{name}.{DENIED}:{http}"),
        get("b27-prefix", f"evil{here}"),
        get("b28", f"{name}\0.{DENIED}:{http}"),
        get("b29", f"{name}.:{http}"),
        get("b30-case", f"{name.upper()}:{http}"),
        get("b30-idn", f"\xe4{here}"),
        get("b31", f"{name}:1"),
        get("b32", here, f"Host: {DENIED}\r\n"),
        raw("b33", f"GET /b33 HTTP/1.1\r\nHost: {here}\r\n\r\n"),
        connect("b34", tunnel, then=client_hello(DENIED).hex()),
        connect("b35", tunnel, then=client_hello(None).hex()),
        connect("b36", tunnel, then=client_hello(name, extra=b"\xfe\x0d\x00\x02\x00\x00").hex()),
        {"id": "b37", "do": "fetch", "url": f"https://{tunnel}/b37", "headers": {"Host": "inner.test"}, "ca": ca},
        connect("b38", tunnel, then=b"SSH-2.0-b38\r\n".hex()),
        get("b39-first", here, after=second),
        get("b40", here, "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "abc"),
        get("b41", here, "Content-Length: 3\r\nContent-Length: 4\r\n", "abcd"),
        get("b42-lf", here, "X: y\nZ: w\r\n"),
        get("b42-cr", here, "X: y\rZ: w\r\n"),
        get("b43", here, "X: y\r\n folded\r\n"),
        get("b44-large", here, "X: " + "a" * 65536 + "\r\n"),
        get("b44-many", here, "".join(f"X{i}: y\r\n" for i in range(1000))),
        raw("b51-ftp", f"GET ftp://{here}/b51 HTTP/1.1\r\n\r\n"),
        raw("b51-https", f"GET https://{tunnel}/b51 HTTP/1.1\r\n\r\n"),
        get("b52", here, "Upgrade: websocket\r\nConnection: Upgrade\r\n"),
        {"id": "b53", "do": "fetch", "url": f"http://{here}/redirect/{DENIED}:{http}"},
        connect("b54", 'x"}{"decision"=="allow:443'),
    ]


def past_the_proxy(net: Internet, canary: HostCanary) -> list[dict[str, Any]]:
    """Cases 1 to 14 and 19: every other way that might be there."""
    token = "b" * 32
    found: list[dict[str, Any]] = [
        {"id": "b1", "do": "tcp", "address": net.address, "port": net.http, "token": "GET /b1 HTTP/1.0\r\n\r\n"},
        {"id": "b2", "do": "tcp", "address": net.address, "port": net.tls, "token": "GET /b2 HTTP/1.0\r\n\r\n"},
        {"id": "b3", "do": "udp", "address": net.address, "port": net.http, "token": token},
        {"id": "b4", "do": "icmp", "address": net.hosts[0]},
        {"id": "b9", "do": "udp", "address": "127.0.0.11", "port": 53, "token": "question"},
        {"id": "b10", "do": "tcp", "address": "127.0.0.11", "port": 53, "token": "question"},
        {"id": "b11-own", "do": "udp", "address": "127.0.0.1", "port": 53, "token": "question"},
        {"id": "b11-name", "do": "resolve", "host": f"{token}.{DENIED}"},
        {"id": "b13", "do": "fetch", "url": f"http://{net.address}:{net.http}/b13", "bypass": True},
        {"id": "b14-link-local", "do": "udp", "address": "fe80::1%lo", "port": canary.port, "token": token},
        {"id": "b14-multicast", "do": "udp", "address": "ff02::1%lo", "port": canary.port, "token": token},
        {"id": "b19", "do": "tcp", "address": net.address, "port": net.http, "token": token, "source_route": True},
    ]
    for index, host in enumerate(net.hosts):
        found += [
            {"id": f"b5-b6-b7-tcp-{index}", "do": "tcp", "address": host, "port": canary.port, "token": token},
            {"id": f"b5-b6-b7-udp-{index}", "do": "udp", "address": host, "port": canary.port, "token": token},
            {"id": f"b12-{index}", "do": "udp", "address": host, "port": 53, "token": "question"},
        ]
    return found


class NetworkAttackContract:
    """A subclass gives the class-scoped fixture `internet`."""

    @pytest.fixture(scope="class")
    @classmethod
    def fight(cls, internet: Internet) -> Trip:
        told, result = internet.send(through_the_proxy(internet), internet.policy())
        return Trip(told, result, internet.arrived())

    @pytest.fixture(scope="class")
    @classmethod
    def canary(cls) -> Iterator[HostCanary]:
        made = HostCanary()
        yield made
        made.close()

    def test_b1_to_b14_and_b19_there_is_no_other_way_out(self, internet: Internet, canary: HostCanary) -> None:
        assert internet.hosts, "a machine without an address of its own cannot show this"
        tries = past_the_proxy(internet, canary)
        told, result = internet.send(tries, internet.policy())
        assert len(told) == len(tries)
        open_ones = {key: value for key, value in told.items() if "error" not in value}
        assert open_ones == {}
        assert canary.tokens() == []
        assert not any(f"/{key} " in internet.arrived() for key in ("b1", "b2", "b13"))
        assert result.network.events == ()

    @pytest.mark.parametrize(("key", "rule"), REFUSED, ids=[key for key, _ in REFUSED])
    def test_b23_to_b54_is_refused_logged_and_does_not_arrive(self, fight: Trip, key: str, rule: str) -> None:
        assert fight.told[key]["rule"] == rule, fight.told[key]
        assert fight.events(rule=rule, decision="block")
        assert f"/{key} " not in fight.arrived

    def test_what_is_allowed_still_arrives_among_all_that(self, fight: Trip) -> None:
        assert fight.told["open"]["status"] == 200
        assert "/open " in fight.arrived

    @pytest.mark.parametrize("key", ["b29", "b30-case"])
    def test_b29_b30_a_final_dot_and_case_are_the_same_host(self, fight: Trip, key: str) -> None:
        assert fight.told[key]["status"] == 200
        assert f"/{key} " in fight.arrived

    @pytest.mark.parametrize(
        ("key", "rule"),
        [("b34", "sni_mismatch"), ("b35", "no_sni"), ("b36", "encrypted_hello"), ("b38", "not_tls")],
    )
    def test_b34_to_b38_a_tunnel_shows_its_name_or_ends(self, fight: Trip, key: str, rule: str) -> None:
        assert (fight.told[key]["status"], fight.told[key]["after"]) == (200, ALERT)
        [event] = fight.events(rule=rule)
        assert (event["decision"], event["bytes_up"]) == ("block", 0)
        assert "SSH-2.0-b38" not in fight.arrived

    def test_b37_the_inner_host_passes_which_is_the_stated_residual(self, fight: Trip) -> None:
        assert fight.told["b37"]["status"] == 200
        assert "Host: inner.test" in fight.arrived
        assert fight.result.network.bypass_risk == "residual"

    def test_b39_a_second_request_goes_nowhere(self, fight: Trip) -> None:
        assert fight.told["b39-first"]["status"] == 200
        assert "/b39-first " in fight.arrived
        assert "/b39-second " not in fight.arrived
        assert len(fight.events(rule="pipelined_request")) == 1

    def test_b53_a_redirect_to_a_denied_host_is_refused(self, fight: Trip) -> None:
        assert fight.told["b53"]["rule"] == "host_not_allowed"
        assert fight.events(host=DENIED, rule="host_not_allowed")

    def test_b54_nothing_that_was_asked_for_wrote_a_line(self, fight: Trip, internet: Internet) -> None:
        allowed = fight.events(decision="allow")
        assert {event["host"] for event in allowed} == {internet.name}
        assert all(event["rule"] == f"allow:{internet.name}:{event['port']}" for event in allowed)
        assert not any(b"secret" in line for line in fight.result.network.events)

    def test_b46_a_flood_is_counted_and_the_proxy_lives(self, internet: Internet) -> None:
        source = (
            "import socket\n"
            "held = [socket.create_connection(('127.0.0.1', 3128), 5) for _ in range(200)]\n"
            "for s in held: s.close()\n"
            "for _ in range(300):\n"
            "    with socket.create_connection(('127.0.0.1', 3128), 5) as s:\n"
            f"        s.sendall(b'GET http://{DENIED}/ HTTP/1.1\\r\\n\\r\\n')\n"
            "        while s.recv(4096): pass\n"
        )
        result = run(internet.engine, "python3", "-c", source, network=internet.policy())
        assert result.exit_code == 0, result.stderr.rendered()
        events = [json.loads(line) for line in result.network.events]
        denied = [event for event in events if event["rule"] == "host_not_allowed"]
        assert sum(event.get("count", 1) for event in denied) == 300
        assert len(denied) == 51
        assert result.network.proxy_alive_at_end is True

    @pytest.mark.acceptance
    def test_b45_a_request_that_drips_is_cut_off(self, internet: Internet) -> None:
        source = (
            "import socket, time\n"
            "s = socket.create_connection(('127.0.0.1', 3128), 5); began = time.monotonic()\n"
            f"s.sendall(b'GET http://{internet.name}:{internet.http}/b45 HTTP/1.1\\r\\n')\n"
            "try:\n"
            "    while time.monotonic() - began < 25: s.sendall(b'X: y\\r\\n'); time.sleep(0.5)\n"
            "except OSError: pass\n"
            "print(int(time.monotonic() - began))\n"
        )
        result = run(internet.engine, "python3", "-c", source, network=internet.policy(), timeout_s=40.0)
        assert 9 <= int(result.stdout.head) <= 15
        assert [json.loads(line)["rule"] for line in result.network.events] == ["timeout"]
        assert "/b45 " not in internet.arrived()
