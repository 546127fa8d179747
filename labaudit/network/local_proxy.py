"""Proxies as child processes of the runner, beside a bubblewrap sandbox: started, asked, ended.

The process gives up its rights before it serves and ends by itself when the runner has gone.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from labaudit.errors import EnvironmentLacks
from labaudit.network.lease import ProxyLease, ProxyPool
from labaudit.network.policy import AskedNetwork, EgressPolicy, machine_addresses
from labaudit.network.program import HERE, READY, ProxyFiles, proxy_command, write_config
from labaudit.network.proxy.control import ask

NOBODY = (65534, 65534)
READY_WITHIN = 20.0
_ENDS_WITHIN = 8.0
_LIVES_WITHIN = 2.0


class NetworkProxy:
    """One running proxy process."""

    def __init__(self, process: subprocess.Popen[bytes], files: ProxyFiles, owns_folder: bool) -> None:
        self._process, self._files, self._owns_folder = process, files, owns_folder
        self._closed = False

    @classmethod
    def start(
        cls, policy: EgressPolicy, folder: Path | None = None, limits: Mapping[str, float] | None = None
    ) -> NetworkProxy:
        """Starts a proxy whose sockets and log are in `folder` (by default one of its own, deleted at the end)."""
        place = folder or Path(tempfile.mkdtemp(prefix="labaudit-proxy-"))
        try:
            return cls._start(policy, ProxyFiles(place), limits, owns_folder=folder is None)
        except BaseException:
            if folder is None:
                shutil.rmtree(place, ignore_errors=True)
            raise

    @classmethod
    def _start(
        cls, policy: EgressPolicy, files: ProxyFiles, limits: Mapping[str, float] | None, *, owns_folder: bool
    ) -> NetworkProxy:
        user = NOBODY if os.geteuid() == 0 else None
        config = write_config(
            files.folder, files.folder, policy, refused=machine_addresses(), user=user, parent=os.getpid(),
            limits=limits,
        )  # fmt: skip
        # a file and not a pipe: nobody reads it while the proxy runs, and a full pipe would stop it
        with files.complaints.open("wb") as complaints:
            process = subprocess.Popen(
                proxy_command(sys.executable, HERE, config), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=complaints, env={}, cwd="/", start_new_session=True,
            )  # fmt: skip
        proxy = cls(process, files, owns_folder)
        try:
            proxy._await_ready()
        except BaseException:
            proxy.close()
            raise
        return proxy

    def _await_ready(self) -> None:
        out = self._process.stdout
        assert out is not None
        ready, _, _ = select.select([out], [], [], READY_WITHIN)
        if ready and os.read(out.fileno(), len(READY)) == READY:
            return
        self._process.kill()
        self._process.wait()
        last = self._files.complaints.read_text(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
        raise EnvironmentLacks(f"the egress proxy did not start: {last[0]}", where=str(self._files.folder))

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def socket(self) -> Path:
        return self._files.socket

    def alive(self) -> bool:
        if self._process.poll() is not None:
            return False
        try:
            return ask(str(self._files.control), "ping", _LIVES_WITHIN) == "ok"
        except OSError:
            return False

    def log_size(self) -> int:
        try:
            return self._files.log.stat().st_size
        except OSError:
            return 0

    def read_log(self, offset: int) -> bytes:
        try:
            with self._files.log.open("rb") as log:
                log.seek(offset)
                return log.read()
        except OSError:
            return b""

    def drain(self) -> bool:
        try:
            return ask(str(self._files.control), "drain").isdecimal()
        except OSError:
            return False

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            self._process.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self._owns_folder:
            shutil.rmtree(self._files.folder, ignore_errors=True)


class LocalProxies:
    """The proxies of one engine. `home` makes a folder for a pooled one, which outlives the trial that asked first."""

    def __init__(self, home: Callable[[], Path] | None = None) -> None:
        self._home = home
        self._pool = ProxyPool()

    def lease(self, network: AskedNetwork, folder: Path) -> ProxyLease:
        """A hold on a proxy for one trial; `folder` is where a proxy of its own keeps sockets and log."""

        def start(policy: EgressPolicy) -> NetworkProxy:
            if not network.pooled:
                return NetworkProxy.start(policy, folder)
            return NetworkProxy.start(policy, self._home() if self._home else None)

        return self._pool.lease(network, start)

    def close(self) -> None:
        """Ends them all."""
        self._pool.close()
