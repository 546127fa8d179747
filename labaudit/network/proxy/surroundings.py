"""The addresses of the machine and of its gateways, from the kernel's tables to networks of one address each.

A listed name must not lead to them: services there were never meant for a trial. In a container the tables are the
container's own; its gateway is the host.
"""

from __future__ import annotations

import ipaddress
import sys
from itertools import pairwise
from pathlib import Path

_GATEWAY = 0x2


def own_addresses(proc: Path = Path("/proc")) -> tuple[str, ...]:
    """Every address of this network namespace. OSError where the kernel does not tell."""
    found: set[str] = set()
    for before, line in pairwise((proc / "net/fib_trie").read_text().splitlines()):
        if "/32 host LOCAL" in line:
            found.add(before.split()[-1] + "/32")
    for line in _lines(proc / "net/if_inet6"):
        found.add(f"{_six(line.split()[0])}/128")
    return tuple(sorted(found))


def gateways(proc: Path = Path("/proc")) -> tuple[str, ...]:
    """Every next hop of this network namespace."""
    found: set[str] = set()
    for line in _lines(proc / "net/route")[1:]:
        fields = line.split()
        if int(fields[3], 16) & _GATEWAY:
            # the kernel prints the four bytes as one number in the machine's own order
            found.add(f"{ipaddress.IPv4Address(int(fields[2], 16).to_bytes(4, sys.byteorder))}/32")
    for line in _lines(proc / "net/ipv6_route"):
        fields = line.split()
        if int(fields[8], 16) & _GATEWAY:
            found.add(f"{_six(fields[4])}/128")
    return tuple(sorted(found))


def _six(digits: str) -> ipaddress.IPv6Address:
    return ipaddress.IPv6Address(int(digits, 16))


def _lines(path: Path) -> list[str]:
    """Empty where the kernel has no such table (no IPv6, say)."""
    try:
        return path.read_text().splitlines()
    except FileNotFoundError:
        return []
