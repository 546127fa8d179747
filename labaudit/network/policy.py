"""A trial's allowlist, from the words of an experiment to what a proxy is told; wrong words are refused with the fix.

`host` or `host:port`, exact: an address, a wildcard or a URL is an error here, never a rule that matches nothing.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from labaudit.errors import BadInput, EnvironmentLacks
from labaudit.network.proxy.rules import Network, Refused, Rules, Target, parse_authority
from labaudit.network.proxy.surroundings import own_addresses

DEFAULT_PORT = 443
_HOSTS, _NETWORKS = "runtime.network.allowed_hosts", "runtime.network.allowed_networks"


class AskedNetwork(Protocol):
    """What this module needs of a network specification."""

    @property
    def allowed_hosts(self) -> tuple[str, ...]: ...

    @property
    def allowed_networks(self) -> tuple[str, ...]: ...

    @property
    def pooled(self) -> bool: ...

    @property
    def pool_key(self) -> str: ...


@dataclass(frozen=True)
class EgressPolicy:
    """Checked targets and networks, in a fixed order, so that equal policies are equal values."""

    targets: tuple[Target, ...]
    networks: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, hosts: Sequence[str], networks: Sequence[str] = ()) -> EgressPolicy:
        """The policy that the words mean, or BadInput that names the word."""
        if not hosts:
            raise BadInput(
                "allowlist_enforced needs at least one host", where=_HOSTS, hint="name hosts, or use network mode none"
            )
        targets = {_target(text, f"{_HOSTS}[{index}]") for index, text in enumerate(hosts)}
        ranges = {_network(text, f"{_NETWORKS}[{index}]") for index, text in enumerate(networks)}
        return cls(
            tuple(sorted(targets, key=lambda target: (target.host, target.port))),
            tuple(sorted(ranges, key=lambda network: (network.version, str(network)))),
        )

    @classmethod
    def asked(cls, network: AskedNetwork) -> EgressPolicy:
        """The policy of a network specification."""
        return cls.parse(network.allowed_hosts, network.allowed_networks)

    def rules(self, refused: Sequence[Network] = ()) -> Rules:
        """The same, as the proxy matches it."""
        return Rules(frozenset(self.targets), self.networks, tuple(refused))

    def config(self, refused: Sequence[str] = ()) -> dict[str, object]:
        """The same, as the proxy's configuration file says it."""
        return {
            "targets": [str(target) for target in self.targets],
            "networks": [str(network) for network in self.networks],
            "refused": list(refused),
        }


def _target(text: str, where: str) -> Target:
    if "://" in text or "/" in text:
        raise BadInput(f'"{text}" is a URL', where=where, hint="name a host or host:port, such as api.example.com:443")
    if "*" in text or text.startswith("."):
        hint = "name each host in full: a wildcard would allow names that others may register"
        raise BadInput(f'"{text}" is a wildcard', where=where, hint=hint)
    try:
        return parse_authority(text, DEFAULT_PORT)
    except Refused as error:
        hints = {
            "ip_literal": "name the host; if its name resolves to a private address, add that to allowed_networks",
            "userinfo": "leave out what stands before the @",
            "bad_port": "ports are numbers from 1 to 65535",
        }
        raise BadInput(f'"{text}": {error.reason}', where=where, hint=hints.get(error.rule, "")) from error


def _network(text: str, where: str) -> Network:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise BadInput(f'"{text}" is not a network: {error}', where=where, hint="such as 10.20.0.0/16") from error
    if network.prefixlen == 0:
        raise BadInput(f'"{text}" is every address', where=where, hint="name the network that the hosts are in")
    return network


def machine_addresses(proc: Path = Path("/proc")) -> tuple[str, ...]:
    """This machine's own addresses, as networks of one address each."""
    try:
        return own_addresses(proc)
    except OSError as error:
        raise EnvironmentLacks(f"the machine's addresses cannot be read: {error.strerror}", where=str(proc)) from error
