"""One trial's hold on a proxy: the socket that leads to it, and the decisions made while the hold lasted.

A proxy serves one trial, or (pooled) the trials of one worker one after another; the lease keeps their events apart.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from labaudit.network.policy import AskedNetwork, EgressPolicy


class RunningProxy(Protocol):
    """A proxy that someone started, wherever it runs."""

    @property
    def socket(self) -> Path:
        """The unix socket that leads to it, as the runner sees it."""

    def alive(self) -> bool:
        """Whether it answers."""

    def log_size(self) -> int:
        """Bytes in its log so far."""

    def read_log(self, offset: int) -> bytes:
        """The log from `offset`."""

    def drain(self) -> bool:
        """Ends its connections and completes its log; False if it did not answer."""

    def close(self) -> None:
        """Ends it and gives back what it held. Idempotent."""


@dataclass
class ProxyLease:
    """The time in which one trial uses a proxy."""

    policy: EgressPolicy
    proxy: RunningProxy
    start: int
    give_back: Callable[[RunningProxy, bool], None]
    pooled: bool = False
    _released: bool = False
    _events: tuple[bytes, ...] | None = field(default=None, repr=False)
    _clean: bool = False

    @property
    def socket(self) -> Path:
        """The unix socket that leads to the proxy."""
        return self.proxy.socket

    def alive(self) -> bool:
        """Whether the proxy still runs. Ask before `events`: what it says about the trial's end is then about that."""
        return self.proxy.alive()

    @property
    def complete(self) -> bool:
        """Whether `events` are all of them: the proxy ended its connections and completed its log when asked to."""
        self.events()
        return self._clean

    def events(self) -> tuple[bytes, ...]:
        """The proxy's lines since the lease began, without line ends; a half-written last line is left out.

        Ends the trial's connections first: call it once the trial is over.
        """
        if self._events is None:
            self._clean = self.proxy.drain()
            data = self.proxy.read_log(self.start)
            self._events = tuple(line for line in data[: data.rfind(b"\n") + 1].split(b"\n") if line)
        return self._events

    def release(self) -> None:
        """Ends the hold. Idempotent. A proxy that could not be drained is not given to another trial."""
        if not self._released:
            self._released = True
            if self._events is None and self.pooled:
                self._clean = self.proxy.drain()
            self.give_back(self.proxy, self._clean)


class ProxyPool:
    """Hands out proxies: a new one for each trial, or a free one of the same policy and key."""

    def __init__(self) -> None:
        self._free: dict[tuple[EgressPolicy, str], list[RunningProxy]] = {}
        self._all: set[RunningProxy] = set()
        self._lock = threading.Lock()

    def lease(self, asked: AskedNetwork, start: Callable[[EgressPolicy], RunningProxy]) -> ProxyLease:
        """A hold on a proxy; `start` makes one where none is free. BadInput for a policy that makes no sense."""
        policy = EgressPolicy.asked(asked)
        key = (policy, asked.pool_key)
        proxy = self._take(key) if asked.pooled else None
        if proxy is None:
            proxy = start(policy)
            with self._lock:
                self._all.add(proxy)

        def give_back(used: RunningProxy, clean: bool) -> None:
            if asked.pooled and clean and self._keep(key, used):
                return
            with self._lock:
                self._all.discard(used)
            used.close()

        return ProxyLease(policy, proxy, proxy.log_size(), give_back, asked.pooled)

    def _take(self, key: tuple[EgressPolicy, str]) -> RunningProxy | None:
        while True:
            with self._lock:
                free = self._free.get(key)
                proxy = free.pop() if free else None
            if proxy is None or proxy.alive():
                return proxy
            with self._lock:
                self._all.discard(proxy)
            proxy.close()

    def _keep(self, key: tuple[EgressPolicy, str], proxy: RunningProxy) -> bool:
        with self._lock:
            if proxy not in self._all:
                return False  # the pool was closed meanwhile
            self._free.setdefault(key, []).append(proxy)
            return True

    def close(self) -> None:
        """Ends every proxy, also those that are still held."""
        with self._lock:
            proxies, self._all = self._all, set()
            self._free.clear()
        for proxy in proxies:
            proxy.close()
