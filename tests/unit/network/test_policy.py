"""Allowlists as experiments write them: exact hosts, or an error that names the word and the fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from labaudit.errors import BadInput, PolicyUnmet
from labaudit.network.enforcer import NetworkEnforcer
from labaudit.network.policy import EgressPolicy, machine_addresses
from labaudit.network.program import proxy_environment
from labaudit.network.proxy.rules import Target, rules_from


def test_hosts_get_the_https_port_and_one_spelling() -> None:
    policy = EgressPolicy.parse(["B.example.com.", "a.example.com:8080", "b.example.com:443"])
    assert policy.targets == (Target("a.example.com", 8080), Target("b.example.com", 443))


def test_equal_policies_are_equal_values() -> None:
    one = EgressPolicy.parse(["a.test", "b.test"], ["10.0.0.0/8", "fd00::/8"])
    two = EgressPolicy.parse(["b.test:443", "A.test"], ["fd00::/8", "10.0.0.0/8"])
    assert one == two
    assert hash(one) == hash(two)


@pytest.mark.parametrize(
    ("hosts", "says"),
    [
        ([], "at least one host"),
        (["*.example.com"], "wildcard"),
        ([".example.com"], "wildcard"),
        (["*"], "wildcard"),
        (["https://example.com"], "URL"),
        (["example.com/path"], "URL"),
        (["127.0.0.1"], "addresses are not allowed"),
        (["10.0.0.0/8"], "URL"),
        (["[::1]:443"], "addresses are not allowed"),
        (["user@example.com"], "user information"),
        (["example.com:0"], "port"),
        (["example.com:http"], "port"),
        (["bücher.example"], "xn--"),
        ([""], "empty"),
        (["good.example", "bad_host"], "letters, digits"),
    ],
)
def test_a_word_that_is_no_exact_host_is_bad_input(hosts: list[str], says: str) -> None:
    with pytest.raises(BadInput) as caught:
        EgressPolicy.parse(hosts)
    assert says in str(caught.value)
    assert caught.value.where.startswith("runtime.network.allowed_hosts")


def test_the_error_names_the_place() -> None:
    with pytest.raises(BadInput) as caught:
        EgressPolicy.parse(["good.example", "bad_host"])
    assert caught.value.where == "runtime.network.allowed_hosts[1]"


@pytest.mark.parametrize("text", ["0.0.0.0/0", "::/0", "10.0.0.1/8", "example.com", "10/8", ""])
def test_a_network_is_one_network_and_not_all_of_them(text: str) -> None:
    with pytest.raises(BadInput):
        EgressPolicy.parse(["a.test"], [text])


def test_the_proxy_reads_the_policy_that_was_meant() -> None:
    policy = EgressPolicy.parse(["a.test", "b.test:80"], ["10.0.0.0/8"])
    config = policy.config(["192.0.2.7/32"])
    assert rules_from(config).targets == frozenset(policy.targets)  # type: ignore[arg-type]
    assert rules_from(config) == policy.rules(rules_from({"targets": [], "networks": ["192.0.2.7/32"]}).networks)  # type: ignore[arg-type]


def test_the_machines_addresses_are_read_from_the_kernel() -> None:
    assert "127.0.0.1/32" in machine_addresses()


def test_an_allowlist_without_a_proxy_is_an_error_and_never_an_open_network() -> None:
    enforcer = NetworkEnforcer("bubblewrap_netns")
    policy = EgressPolicy.parse(["a.test"])
    for given in ((policy, None), (None, None)):
        with pytest.raises(PolicyUnmet):
            enforcer.apply("allowlist_enforced", *given)


def test_each_mode_says_what_must_be_in_place() -> None:
    class Handle:
        socket = Path("/run/x/proxy.sock")

    enforcer = NetworkEnforcer("docker_none")
    none = enforcer.apply("none", None, None)
    assert (none.enforcement, none.shares_network, none.forwards) == ("docker_none", False, {})
    full = enforcer.apply("full", None, None)
    assert (full.enforcement, full.shares_network) == ("none", True)
    listed = enforcer.apply("allowlist_enforced", EgressPolicy.parse(["a.test"]), Handle())
    assert (listed.enforcement, listed.shares_network) == ("unix_socket_proxy", False)
    assert listed.forwards == {3128: Handle.socket}
    assert listed.environment == proxy_environment(3128)
    assert listed.environment["https_proxy"] == "http://127.0.0.1:3128"
