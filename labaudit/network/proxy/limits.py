"""Bounds on what one trial can ask of its proxy: how many connections, how long each part may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ProxyLimits:
    """Seconds and counts. Each wait has an end, so a client that does nothing holds nothing for ever."""

    connections: int = 128
    head_seconds: float = 10.0
    hello_seconds: float = 10.0
    resolve_seconds: float = 10.0
    connect_seconds: float = 10.0
    idle_seconds: float = 600.0
    """Long: a model may think for minutes before its first byte."""
    linger_seconds: float = 1.0
    addresses: int = 4
    """So many addresses of a name are tried."""
