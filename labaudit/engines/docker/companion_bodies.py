"""The create bodies of the companions: the holder of a network namespace, and the proxy's sidecar. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from labaudit.engines.docker.api import Facts
from labaudit.engines.docker.creation import HOST_NAME, bind, hardening, isolated_network
from labaudit.engines.spec import INSIDE
from labaudit.network.program import CONFIG, forward_command, proxy_command

PROGRAM = "/labaudit/program"
FOLDER = "/labaudit/proxy"
NOBODY = (65534, 65534)
_PYTHON = "python3"
_MEMORY = 256 << 20


def holder_body(image: str, program: Path, ports: Mapping[int, Path], labels: Mapping[str, str]) -> Facts:
    """No network, loopback ports that lead to unix sockets. The runner's own user, because it owns the sockets."""
    inside = {port: f"/labaudit/sockets/{port}" for port in ports}
    mounts = [bind(path, inside[port], read_only=False) for port, path in ports.items()]
    mounts.append(bind(program, PROGRAM, read_only=True))
    command = forward_command(_PYTHON, PROGRAM, inside)
    body = _body(image, command, (os.geteuid(), os.getegid()), labels, mounts)
    body["Hostname"] = HOST_NAME
    body["HostConfig"] |= isolated_network()
    return body


def sidecar_body(
    image: str, program: Path, folder: Path, network: str, names: Sequence[str], labels: Mapping[str, str]
) -> Facts:
    """The proxy: a network, and one folder for its sockets and its log."""
    mounts = [bind(program, PROGRAM, read_only=True), bind(folder, FOLDER, read_only=False)]
    command = proxy_command(_PYTHON, PROGRAM, f"{FOLDER}/{CONFIG}")
    body = _body(image, command, sidecar_user(), labels, mounts)
    body["HostConfig"] |= {"NetworkMode": network, "ExtraHosts": list(names)}
    return body


def canary_body(
    image: str, command: tuple[str, ...], network: str, names: Sequence[str], labels: Mapping[str, str]
) -> Facts:
    """A program of ours that is meant to be reached, or to reach: on `network`, found there under `names`."""
    body = _body(image, command, NOBODY, labels, [])
    body["HostConfig"] |= {"NetworkMode": network}
    if names:
        body["NetworkingConfig"] = {"EndpointsConfig": {network: {"Aliases": list(names)}}}
    return body


def sidecar_user() -> tuple[int, int]:
    """Nobody where the runner is root; else the runner's own user, the only one that can write its folders."""
    return NOBODY if os.geteuid() == 0 else (os.geteuid(), os.getegid())


def _body(
    image: str, command: tuple[str, ...], user: tuple[int, int], labels: Mapping[str, str], mounts: list[Facts]
) -> Facts:
    return {
        "Image": image,
        "Entrypoint": [command[0]],
        "Cmd": list(command[1:]),
        "User": f"{user[0]}:{user[1]}",
        "Labels": dict(labels),
        "AttachStdout": True,
        "AttachStderr": True,
        "WorkingDir": INSIDE.tmp,
        "StopSignal": "SIGTERM",
        "HostConfig": {
            **hardening(1),
            "Mounts": mounts,
            "Memory": _MEMORY,
            "MemorySwap": _MEMORY,
            "PidsLimit": 600,  # a few threads per connection, and both programs bound their connections
        },
    }
