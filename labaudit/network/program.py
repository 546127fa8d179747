"""The proxy and the forwarder as programs: what to run, what to copy into a container, what to tell them.

Both are started by `python3 -I -S -B`: no site packages, no environment, nothing but their own folder.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labaudit.errors import EnvironmentLacks
from labaudit.network.policy import EgressPolicy

HERE = Path(__file__).parent
SOCKET, CONTROL, LOG, CONFIG = "proxy.sock", "control.sock", "network_events.jsonl", "proxy.json"
READY = b"ready\n"
_LONGEST_SOCKET_PATH = 107
_BOOT = "import sys; sys.path.append(sys.argv[1]); from proxy.__main__ import main; sys.exit(main(sys.argv[2]))"
_FLAGS = ("-I", "-S", "-B")


@dataclass(frozen=True)
class ProxyFiles:
    """Where one proxy keeps its things: as it sees them itself."""

    folder: Path

    @property
    def socket(self) -> Path:
        """Leads to the proxy; forwarders connect here."""
        return self.folder / SOCKET

    @property
    def control(self) -> Path:
        """The runner's own line; never shown to a trial."""
        return self.folder / CONTROL

    @property
    def log(self) -> Path:
        return self.folder / LOG

    @property
    def config(self) -> Path:
        return self.folder / CONFIG

    @property
    def complaints(self) -> Path:
        """What a proxy process says on stderr."""
        return self.folder / "proxy.stderr"


def write_program(folder: Path) -> None:
    """Copies `proxy/` and `forward.py` into `folder`, readable by everyone: the mount of a sidecar or holder."""
    target = folder / "proxy"
    target.mkdir(mode=0o755, parents=True)
    for source in sorted((HERE / "proxy").glob("*.py")):
        shutil.copyfile(source, target / source.name)
    shutil.copyfile(HERE / "forward.py", folder / "forward.py")
    for path in (folder, target, *folder.rglob("*.py")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def write_config(
    seen_here: Path,
    seen_there: Path,
    policy: EgressPolicy,
    *,
    refused: Sequence[str] = (),
    user: tuple[int, int] | None = None,
    parent: int | None = None,
    socket_mode: int = 0o600,
    limits: Mapping[str, float] | None = None,
) -> Path:
    """Writes proxy.json into `seen_here`, with paths as the proxy sees them (`seen_there`)."""
    for name in (SOCKET, CONTROL):
        for folder in (seen_here, seen_there):
            if len(str(folder / name).encode()) > _LONGEST_SOCKET_PATH:
                raise EnvironmentLacks(
                    f"the path is too long for a unix socket (at most {_LONGEST_SOCKET_PATH} bytes)",
                    where=str(folder / name),
                    hint="set LABAUDIT_RUNTIME_DIR to a short path",
                )
    files = ProxyFiles(seen_there)
    config: dict[str, object] = {
        "socket": str(files.socket), "control": str(files.control), "log": str(files.log), "user": user,
        "parent": parent, "socket_mode": socket_mode, "limits": dict(limits or {}), **policy.config(refused),
    }  # fmt: skip
    path = seen_here / CONFIG
    path.write_text(json.dumps(config))
    path.chmod(0o644)
    return path


def proxy_command(python: str, program: Path | str, config: Path | str) -> tuple[str, ...]:
    """Starts the proxy; it prints `ready` when it serves. `program` is the folder that holds `proxy/`."""
    return (python, *_FLAGS, "-c", _BOOT, str(program), str(config))


def forward_command(python: str, program: Path | str, ports: Mapping[int, Path | str]) -> tuple[str, ...]:
    """Starts the forwarder in a holder container: each 127.0.0.1 port to its unix socket; prints `ready`."""
    pairs = tuple(f"{port}={socket}" for port, socket in sorted(ports.items()))
    return (python, *_FLAGS, str(Path(program) / "forward.py"), *pairs)


def proxy_environment(port: int) -> dict[str, str]:
    """Variables that lead well-behaved clients to the proxy. A convenience: no claim rests on them."""
    url = f"http://127.0.0.1:{port}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    found = {name: url for upper in names for name in (upper, upper.lower())}
    # loopback services of the trial itself are reached directly
    return found | {"NO_PROXY": "localhost,127.0.0.1", "no_proxy": "localhost,127.0.0.1"}
