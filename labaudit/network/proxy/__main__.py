"""Runs the proxy as a program: `python3 -m proxy CONFIG`, where CONFIG is a JSON file that the runner wrote.

    {"socket": path, "control": path, "log": path, "targets": ["host:port"], "networks": [], "refused": [],
     "limits": {}, "user": [uid, gid] or null, "parent": pid or null, "socket_mode": 384}

It prints `ready` once it serves. It ends on SIGTERM, when its parent has gone, or when the log cannot be written.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from .control import ControlSocket
from .decisions import DecisionLog
from .limits import ProxyLimits
from .rules import rules_from
from .server import ProxyServer
from .surroundings import gateways, own_addresses

LOG_FAILED = 3
_FLUSH_EVERY = 10


def main(path: str) -> int:
    """Serves until told to end."""
    config = json.loads(Path(path).read_bytes())
    log = DecisionLog(os.open(config["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
    listener = _listen(config["socket"], config.get("socket_mode", 0o600))
    control = _listen(config["control"], 0o600)
    _drop_rights(config.get("user"))
    stop, failed = threading.Event(), threading.Event()

    def on_failure(error: OSError) -> None:
        failed.set()
        stop.set()

    limits = ProxyLimits(**config.get("limits", {}))
    # what the runner sees as its machine, and what is seen from here: in a container that is not the same
    config["refused"] = [*config["refused"], *own_addresses(), *gateways()]
    server = ProxyServer(listener, rules_from(config), log, limits=limits, on_failure=on_failure)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    server.start()
    line = ControlSocket(control, server)
    os.write(1, b"ready\n")
    _wait(stop, server, config.get("parent"))
    line.close()
    server.close()
    for name in (config["socket"], config["control"]):
        with suppress(OSError):
            Path(name).unlink()
    return LOG_FAILED if failed.is_set() else 0


def _wait(stop: threading.Event, server: ProxyServer, parent: int | None) -> None:
    seconds = 0
    while not stop.wait(1.0):
        seconds += 1
        if parent is not None and os.getppid() != parent:
            return
        if seconds % _FLUSH_EVERY == 0:
            server.flush()


def _listen(path: str, mode: int) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with suppress(FileNotFoundError):
        Path(path).unlink()
    # never open to more than `mode`, not even for the moment between bind and chmod
    before = os.umask(0o777 & ~mode)
    try:
        listener.bind(path)
    finally:
        os.umask(before)
    listener.listen(128)
    return listener


def _drop_rights(user: Any) -> None:
    """After everything is loaded and bound: what talks to the trial needs no rights on this machine."""
    if user is not None:
        os.setgroups([])
        os.setresgid(user[1], user[1], user[1])
        os.setresuid(user[0], user[0], user[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
