"""The egress proxy in a container of its own, seen as any running proxy: socket, log, drain, close."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import docker

from labaudit.engines.docker.companion import Companion
from labaudit.engines.docker.companion_bodies import FOLDER, NOBODY, sidecar_body
from labaudit.engines.host.surfaces import remove_folder
from labaudit.network.policy import EgressPolicy, machine_addresses
from labaudit.network.program import ProxyFiles, write_config
from labaudit.network.proxy.control import ask


@dataclass(frozen=True)
class SidecarSetting:
    """What all sidecars of an engine share."""

    client: docker.APIClient
    image: str
    program: Path
    network: str
    """The engine's network through which the proxy goes out."""
    names: tuple[str, ...] = ()
    """Further `name:address` pairs that the proxy knows."""


class SidecarProxy:
    """One proxy container. With `holder` it also keeps a namespace for the trials that use it one after another."""

    def __init__(
        self, setting: SidecarSetting, policy: EgressPolicy, folder: Path, labels: Mapping[str, str], *, owns: bool
    ) -> None:
        self._files, self._owns = ProxyFiles(folder), owns
        folder.mkdir(mode=0o700, exist_ok=True)
        write_config(folder, Path(FOLDER), policy, refused=machine_addresses(), socket_mode=0o666)
        if os.geteuid() == 0:
            os.chown(folder, *NOBODY)
        folder.chmod(0o700)
        names = (*names_of_host([target.host for target in policy.targets]), *setting.names)
        body = sidecar_body(setting.image, setting.program, folder, setting.network, names, labels)
        self._companion = Companion(setting.client, body, "egress proxy")
        self.holder: Companion | None = None

    @property
    def container(self) -> str:
        """The sidecar's id."""
        return self._companion.container

    @property
    def socket(self) -> Path:
        return self._files.socket

    def alive(self) -> bool:
        try:
            return ask(str(self._files.control), "ping") == "ok"
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
        if self.holder is not None:
            self.holder.remove()
        self._companion.remove()
        if self._owns and self._files.folder.exists():
            remove_folder(self._files.folder.parent)


def names_of_host(hosts: Iterable[str], table: Path = Path("/etc/hosts")) -> tuple[str, ...]:
    """What this machine's own table of names says about `hosts`, as `name:address`: a container has another table."""
    wanted, found = set(hosts), []
    try:
        lines = table.read_text(errors="replace").splitlines()
    except OSError:
        return ()
    for line in lines:
        address, *names = line.partition("#")[0].split() or [""]
        found += [f"{name.lower()}:{address}" for name in names if name.lower() in wanted and name != "localhost"]
    return tuple(dict.fromkeys(found))
