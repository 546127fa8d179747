"""Host names, ports and addresses to allow or block, with the rule's name. Pure; resolves and dials nothing."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")

# Our own list, after the special-purpose registries: `is_global` answers differently in each version of Python, and
# a decision must not depend on the interpreter of a sidecar.
_NOT_PUBLIC_4 = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/4", "240.0.0.0/4",
        "168.63.129.16/32",  # looks public, yet a cloud answers there from the machine's own host
    )
)  # fmt: skip
_PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
# Documentation, and addresses that carry another address inside (6to4, Teredo); NAT64 and mapped lie outside 2000::/3.
_NOT_PUBLIC_6 = tuple(
    ipaddress.IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)  # fmt: skip


class Refused(Exception):
    """A decision to block: the rule's name and a sentence."""

    def __init__(self, rule: str, reason: str, status: int = 403) -> None:
        super().__init__(reason)
        self.rule, self.reason, self.status = rule, reason, status


@dataclass(frozen=True)
class Target:
    """A host and a port, both checked."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Rules:
    """What is allowed: exact targets, and networks beyond the public ones into which their names may resolve.

    `refused` are the machine's own addresses and its gateways: refused in whatever range they are, unless a network
    that the policy names contains them, which is then said in the log.
    """

    targets: frozenset[Target]
    networks: tuple[Network, ...] = ()
    refused: tuple[Network, ...] = ()

    def check(self, target: Target) -> str:
        """The name of the rule that allows `target`, else Refused."""
        if target in self.targets:
            return f"allow:{target}"
        if any(allowed.host == target.host for allowed in self.targets):
            raise Refused("port_not_allowed", f"{target.host} is allowed, port {target.port} is not")
        raise Refused("host_not_allowed", f"{target.host} is not on the list")

    def check_addresses(self, host: str, addresses: Iterable[str]) -> list[Address]:
        """The addresses to dial. One that is not allowed spoils all: a mixed answer is how rebinding begins."""
        checked = [parse_address(text) for text in addresses]
        if not checked:
            raise Refused("name_not_resolved", f"{host} has no address", 502)
        for address in checked:
            if why := self.why_not(address):
                raise Refused("address_not_allowed", f"{host} resolves to {address}, which is {why}")
        return checked

    def why_not(self, address: Address) -> str:
        """Why the address must not be dialled; empty if it may be."""
        address = getattr(address, "ipv4_mapped", None) or address
        if _within(address, self.networks):
            return ""
        if _within(address, self.refused):
            return "an address of this machine or its gateway"
        if isinstance(address, ipaddress.IPv4Address):
            public = not _within(address, _NOT_PUBLIC_4)
        else:
            public = address in _PUBLIC_6 and not _within(address, _NOT_PUBLIC_6)
        return "" if public else "not a public address"

    def remark(self, address: Address) -> str:
        """What the log should say about an allowed address; empty for most."""
        inner = getattr(address, "ipv4_mapped", None) or address
        return "the address is this machine's own or its gateway's" if _within(inner, self.refused) else ""


def _within(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def parse_address(text: str) -> Address:
    """An address as a resolver writes it; a scope such as `%eth0` makes it link-local, so it is cut off."""
    return ipaddress.ip_address(text.partition("%")[0])


def parse_host(text: str) -> str:
    """A host name in its normal form: lower case, no trailing dot. Refused if it is anything else than a name."""
    if not text.isascii():
        # before lower(): it would turn a Kelvin sign into a plain k
        raise Refused("bad_host", "names beyond ASCII must be written in their xn-- form", 400)
    host = text.lower().removesuffix(".")
    if not host or len(host) > 253:
        raise Refused("bad_host", "the host name is empty or too long", 400)
    labels = host.split(".")
    if any(not _LABEL.fullmatch(label) for label in labels):
        if host.startswith("[") or ":" in host:
            raise Refused("ip_literal", "addresses are not allowed, only names")
        raise Refused("bad_host", "a host name has letters, digits, hyphens and dots only", 400)
    if _NUMBER.fullmatch(labels[-1]):
        # 127.0.0.1, 2130706433, 0x7f.1, 017700000001: whatever some resolver would take for an address
        raise Refused("ip_literal", "addresses are not allowed, only names")
    return host


def parse_port(text: str) -> int:
    """A port from 1 to 65535 in plain decimal digits."""
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 0 < int(text) < 65536:
        raise Refused("bad_port", "the port is not a number from 1 to 65535", 400)
    return int(text)


def parse_authority(text: str, default_port: int | None = None) -> Target:
    """`host:port`, or `host` where there is a default."""
    if "@" in text:
        raise Refused("userinfo", "user information in a target is not allowed", 400)
    if text.startswith("["):
        raise Refused("ip_literal", "addresses are not allowed, only names")
    host, colon, port = text.partition(":")
    if ":" in port:
        raise Refused("ip_literal", "addresses are not allowed, only names")
    if not colon and default_port is None:
        raise Refused("bad_port", "the target has no port", 400)
    return Target(parse_host(host), parse_port(port) if colon else default_port or 0)


def rules_from(config: dict[str, list[str]]) -> Rules:
    """The rules in a configuration that was checked before it was written."""
    targets = frozenset(parse_authority(text) for text in config["targets"])
    networks, refused = (
        tuple(ipaddress.ip_network(text) for text in config.get(key, ())) for key in ("networks", "refused")
    )
    return Rules(targets, networks, refused)
