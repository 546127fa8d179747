"""Names, ports and addresses: what is the same host, what is no host at all, and which addresses may be dialled."""

from __future__ import annotations

import ipaddress

import pytest

from labaudit.network.proxy.rules import Refused, Rules, Target, parse_authority, parse_host, parse_port, rules_from


@pytest.mark.parametrize("text", ["api.example.com", "API.Example.COM", "api.example.com.", "Api.example.com."])
def test_case_and_a_trailing_dot_make_no_difference(text: str) -> None:
    assert parse_host(text) == "api.example.com"


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1", "2130706433", "0x7f000001", "017700000001", "127.1", "0x7f.1", "127.0.0.0x1", "1.2.3.4.", "0",
        "0x", "example.1", "::1", "[::1]", "[::ffff:127.0.0.1]", "::ffff:7f00:1", "fe80::1%eth0",
    ],
)  # fmt: skip
def test_whatever_a_resolver_takes_for_an_address_is_no_name(text: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_host(text)
    assert caught.value.rule == "ip_literal"


@pytest.mark.parametrize(
    "text",
    [
        "", ".", "..", "a..b", ".a", "-a.com", "a-.com", "a_b.com", "a b.com", "a\0.com", "allowed.com\0.evil.com",
        "a/b", "a\\b", "a%2eb", "exa\u212aple.com", "\uff41.com", "ß.com", "a" * 64 + ".com", "a." * 127 + "toolong",
        "a\n.com", "a\r\nb", "*", "*.example.com", "a,b", "a;b", "a@b",
    ],
)  # fmt: skip
def test_other_characters_make_no_name(text: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_host(text)
    assert caught.value.rule == "bad_host"


def test_an_idn_is_a_name_in_its_ascii_form_only() -> None:
    assert parse_host("xn--bcher-kva.example") == "xn--bcher-kva.example"


@pytest.mark.parametrize("text", ["0", "65536", "-1", "+80", "8 0", "", "080000", "0x50", "٨٠", "80\n"])
def test_ports_are_plain_numbers(text: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_port(text)
    assert caught.value.rule == "bad_port"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("user@allowed.com:443", "userinfo"), ("allowed.com:443@evil.com:443", "userinfo"), ("[::1]:443", "ip_literal"),
        ("::1:443", "ip_literal"), ("allowed.com", "bad_port"), ("allowed.com:", "bad_port"), (":443", "bad_host"),
        ("allowed.com:443:443", "ip_literal"),
    ],
)  # fmt: skip
def test_an_authority_is_a_name_and_a_port_and_nothing_else(text: str, rule: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_authority(text)
    assert caught.value.rule == rule


RULES = Rules(frozenset({Target("api.example.com", 443)}))


@pytest.mark.parametrize(
    "host",
    ["evil.com", "api.example.com.evil.com", "evilapi.example.com", "example.com", "com", "x.api.example.com",
     "api-example.com", "api.example.co"],
)  # fmt: skip
def test_only_the_exact_host_is_allowed(host: str) -> None:
    with pytest.raises(Refused) as caught:
        RULES.check(Target(host, 443))
    assert caught.value.rule == "host_not_allowed"


def test_another_port_of_an_allowed_host_has_a_rule_of_its_own() -> None:
    assert RULES.check(Target("api.example.com", 443)) == "allow:api.example.com:443"
    with pytest.raises(Refused) as caught:
        RULES.check(Target("api.example.com", 8443))
    assert caught.value.rule == "port_not_allowed"


NOT_PUBLIC = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "100.64.0.1", "100.100.100.200", "192.0.0.192", "198.18.0.1", "192.0.2.1", "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "192.88.99.1", "168.63.129.16",
    "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1",
    "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::1", "2001::1", "2001:db8::1",
    "3fff::1", "fec0::1", "::ffff:0:7f00:1", "100::1", "5f00::1",
]  # fmt: skip


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_allowed_name_must_not_lead_to_an_address_that_is_not_public(address: str) -> None:
    with pytest.raises(Refused) as caught:
        RULES.check_addresses("api.example.com", [address])
    assert caught.value.rule == "address_not_allowed"


@pytest.mark.parametrize("address", ["93.184.216.34", "1.1.1.1", "2606:2800:220:1::1", "::ffff:93.184.216.34"])
def test_public_addresses_may_be_dialled(address: str) -> None:
    assert RULES.check_addresses("api.example.com", [address]) == [ipaddress.ip_address(address)]


def test_one_bad_address_spoils_the_whole_answer() -> None:
    with pytest.raises(Refused) as caught:
        RULES.check_addresses("api.example.com", ["93.184.216.34", "127.0.0.1"])
    assert caught.value.rule == "address_not_allowed"


def test_a_name_without_addresses_is_not_resolved() -> None:
    with pytest.raises(Refused) as caught:
        RULES.check_addresses("api.example.com", [])
    assert caught.value.rule == "name_not_resolved"


def test_a_named_network_opens_itself_and_nothing_beside_it() -> None:
    rules = rules_from({"targets": ["a.test:80"], "networks": ["10.20.0.0/16", "fd00:1::/64"]})
    assert rules.check_addresses("a.test", ["10.20.3.4", "fd00:1::5", "::ffff:10.20.0.1"])
    for address in ("10.21.0.1", "fd00:2::1", "::ffff:10.21.0.1", "64:ff9b::a14:1"):
        with pytest.raises(Refused):
            rules.check_addresses("a.test", [address])


def test_b8_an_address_of_this_machine_is_refused_though_it_be_public() -> None:
    closed = rules_from({"targets": [], "networks": [], "refused": ["93.184.216.34/32"]})
    assert closed.why_not(ipaddress.ip_address("93.184.216.34")) == "an address of this machine or its gateway"
    assert closed.why_not(ipaddress.ip_address("::ffff:93.184.216.34")) == "an address of this machine or its gateway"
    assert closed.why_not(ipaddress.ip_address("93.184.216.35")) == ""


def test_b8_a_named_network_opens_the_machines_address_in_it_and_the_log_says_so() -> None:
    around = rules_from({"targets": [], "networks": ["172.18.0.0/16"], "refused": ["172.18.0.1/32", "172.19.0.1/32"]})
    expected = {"172.18.0.1": (False, True), "172.18.0.2": (False, False), "172.19.0.1": (True, True)}
    for address, (refused, remarked) in expected.items():
        assert bool(around.why_not(ipaddress.ip_address(address))) is refused
        assert bool(around.remark(ipaddress.ip_address(address))) is remarked
