"""A server of our own that trials may reach through the proxy, so that an allowlist can be shown without an internet.

On docker it is a container on a bridge of its own; beside bubblewrap it is a process on this machine's loopback.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from labaudit.engines.host.ownership import labels_of
from labaudit.engines.protocol import Engine, SandboxLabels
from labaudit.errors import EnvironmentLacks

if TYPE_CHECKING:
    from labaudit.engines.docker.engine import DockerEngine

NAME, PORT = "stand-in.internal", 8088
EGRESS_VARIABLE = "LABAUDIT_EGRESS_NETWORK"


@dataclass(frozen=True)
class StandIn:
    """Where the server is: for `allowed_hosts`, and the networks that its name leads to."""

    target: str
    networks: tuple[str, ...]


@contextmanager
def stand_in_server(engine: Engine, program: Path) -> Iterator[StandIn]:
    """Runs `program` (arguments: address, port; says `ready PORT`) where this engine's proxies can reach it."""
    if engine.name == "docker":
        with _container(cast("DockerEngine", engine), program) as found:
            yield found
    else:
        with _process(program) as found:
            yield found


@contextmanager
def _container(engine: DockerEngine, program: Path) -> Iterator[StandIn]:
    from labaudit.engines.docker.api import calling
    from labaudit.engines.docker.companion import Companion
    from labaudit.engines.docker.companion_bodies import canary_body

    token = secrets.token_hex(4)
    labels = labels_of(SandboxLabels("stand-in", token), "canary")
    network, client = f"labaudit-stand-in-{token}", engine.client
    with ExitStack() as stack:
        with calling("make a network"):
            made = client.create_network(network, driver="bridge", labels=labels)["Id"]
            stack.callback(client.remove_network, made)
            subnets = tuple(str(row["Subnet"]) for row in client.inspect_network(made)["IPAM"]["Config"])
        command = ("python3", "-c", program.read_text(), "0.0.0.0", str(PORT))  # noqa: S104, its own bridge only
        body = canary_body(engine.resolve_image(None).id, command, network, (NAME,), labels)
        stack.callback(Companion(client, body, "stand-in server", ready=b"ready ").remove)
        before = os.environ.get(EGRESS_VARIABLE)
        os.environ[EGRESS_VARIABLE] = network
        try:
            yield StandIn(f"{NAME}:{PORT}", subnets)
        finally:
            if before is None:
                os.environ.pop(EGRESS_VARIABLE, None)
            else:
                os.environ[EGRESS_VARIABLE] = before


@contextmanager
def _process(program: Path) -> Iterator[StandIn]:
    command = [sys.executable, str(program), "127.0.0.1", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline().split()
            if len(said) != 2 or said[0] != b"ready":
                raise EnvironmentLacks("the stand-in server did not get ready", where=str(program))
            yield StandIn(f"localhost:{int(said[1])}", ("127.0.0.0/8", "::1/128"))
        finally:
            process.terminate()
