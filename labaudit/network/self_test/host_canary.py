"""A canary in the host's own network namespace, in threads of the runner; it stands for the machine's services."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Sequence
from typing import Literal

from labaudit.network.policy import machine_addresses
from labaudit.network.self_test.canary import Canary
from labaudit.network.self_test.run import CanaryPoint

NAME = "host"
_SOMEWHERE = ("192.0.2.1", 9)
_KINDS: tuple[Literal["tcp", "udp"], ...] = ("tcp", "udp")


class HostCanary:
    """Listens on every address of the machine (or on one), by TCP, UDP and an abstract unix socket."""

    def __init__(self, address: str = "0.0.0.0") -> None:  # noqa: S104, it answers to random tokens only
        self._lock = threading.Lock()
        self._arrivals: list[tuple[str, str, str]] = []
        self._address = address
        self.abstract = f"labaudit-canary-{secrets.token_hex(8)}"
        self._canary = Canary(address, 0, self._note, self.abstract)

    @property
    def port(self) -> int:
        return self._canary.port

    def _note(self, token: str, transport: str, peer: str) -> None:
        with self._lock:
            self._arrivals.append((token, transport, peer))

    def tokens(self) -> list[str]:
        """Every token that arrived."""
        with self._lock:
            return [token for token, _, _ in self._arrivals]

    def points(self, reachable: Sequence[str] | None = None) -> tuple[CanaryPoint, ...]:
        """All ways to reach it: each IPv4 address of the machine, and the abstract socket.

        `reachable` are the addresses that the unrestricted place must reach (default: the lasting ones). The others are
        attacked too, and rest on the control of these. Ask after the sandbox's networks exist: a bridge's gateway is an
        address of the machine too.
        """
        mine = [self._address] if self._address != "0.0.0.0" else _ipv4_of_machine()  # noqa: S104
        good = set(_lasting(mine) if reachable is None else reachable)
        found = [
            CanaryPoint(NAME, kind, address, self.port, "sandbox" if address in good else "none")
            for address in sorted({*mine, *good})
            for kind in _KINDS
        ]
        return (*found, CanaryPoint(NAME, "abstract", self.abstract, control="host"))

    def close(self) -> None:
        """Stops listening."""
        self._canary.close()


def _lasting(addresses: list[str]) -> list[str]:
    """Loopback and the address that leads out: bridges of others may come and go while the test runs."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        try:
            line.connect(_SOMEWHERE)  # asks the routing table; a datagram socket sends nothing for it
            out = str(line.getsockname()[0])
        except OSError:
            out = ""
    return [address for address in addresses if address in ("127.0.0.1", out)] or addresses


def _ipv4_of_machine() -> list[str]:
    found = [network.partition("/")[0] for network in machine_addresses() if ":" not in network]
    return [address for address in found if not address.startswith("127.") or address == "127.0.0.1"]
