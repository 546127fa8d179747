"""The kernel's tables of addresses and routes, as kept from a machine with two networks and IPv6."""

from __future__ import annotations

from pathlib import Path

import pytest

from labaudit.errors import EnvironmentLacks
from labaudit.network.policy import machine_addresses
from labaudit.network.proxy.surroundings import gateways, own_addresses

FIB = """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.1.0.0/16 2 0 2
        |-- 10.1.0.0
           /16 link UNICAST
        |-- 10.1.2.3
           /32 host LOCAL
        |-- 10.1.255.255
           /32 link BROADCAST
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.0
           /8 host LOCAL
        |-- 127.0.0.1
           /32 host LOCAL
"""
ROUTE = """Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0100010A\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0000010A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
"""
IF_SIX = "fd000000000000000000000000000005 02 40 00 80 eth0\n00000000000000000000000000000001 01 80 10 80 lo\n"
ZERO = "0" * 32
ROUTE_SIX = (
    f"{ZERO} 00 {ZERO} 00 fd000000000000000000000000000001 00000400 00000001 00000000 00000003     eth0\n"
    f"fd000000000000000000000000000000 40 {ZERO} 00 {ZERO} 00000100 00000001 00000000 00000001     eth0\n"
)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "net").mkdir()
    for name, text in (("fib_trie", FIB), ("route", ROUTE), ("if_inet6", IF_SIX), ("ipv6_route", ROUTE_SIX)):
        (tmp_path / "net" / name).write_text(text)
    return tmp_path


def test_own_addresses_are_the_local_ones_of_both_kinds(proc: Path) -> None:
    assert own_addresses(proc) == ("10.1.2.3/32", "127.0.0.1/32", "::1/128", "fd00::5/128")


def test_gateways_are_the_next_hops_of_both_kinds(proc: Path) -> None:
    assert gateways(proc) == ("10.1.0.1/32", "fd00::1/128")


def test_a_kernel_without_ipv6_has_no_such_tables(proc: Path) -> None:
    for name in ("if_inet6", "ipv6_route"):
        (proc / "net" / name).unlink()
    assert own_addresses(proc) == ("10.1.2.3/32", "127.0.0.1/32")
    assert gateways(proc) == ("10.1.0.1/32",)


def test_a_kernel_that_tells_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacks):
        machine_addresses(tmp_path)


def test_this_machines_own_tables_can_be_read() -> None:
    assert "127.0.0.1/32" in own_addresses()
    assert all(text.endswith(("/32", "/128")) for text in gateways())
