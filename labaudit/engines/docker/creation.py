"""From a sandbox spec to the body of Docker's create call. Pure.

Everything that confines is asked for here; whether it holds is read back by the trial's own init and from the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from labaudit.engines.observation.init_script import init_command
from labaudit.engines.running.environment import harness_environment
from labaudit.engines.seccomp.docker_profile import rendered
from labaudit.engines.spec import INSIDE, SandboxSpec

HOST_NAME = "sandbox"
_SURFACES = ("in", "out", "workspace", "state")


@dataclass(frozen=True)
class Places:
    """Host paths that go into the container, and the user it runs as."""

    surfaces: Mapping[str, Path]
    read_only: tuple[tuple[Path, str], ...]
    user: tuple[int, int]


def trial_container(
    spec: SandboxSpec, places: Places, labels: Mapping[str, str], *, joined: str | None
) -> dict[str, object]:
    """The create body of a trial. `joined`: the container whose network namespace it enters."""
    argv = init_command(spec.command, supervise=True)
    env = harness_environment(spec)
    return {
        "Image": spec.image,
        "Entrypoint": list(argv[:4]),
        "Cmd": list(argv[4:]),
        "Env": [f"{name}={value}" for name, value in env.items()],
        "User": f"{places.user[0]}:{places.user[1]}",
        "WorkingDir": spec.workdir,
        "Labels": dict(labels),
        "AttachStdin": True,  # the init waits there for its start, see init_script
        "AttachStdout": True,
        "AttachStderr": True,
        "OpenStdin": True,
        "StdinOnce": True,
        "Tty": False,
        "NetworkDisabled": False,
        **({} if joined else {"Hostname": HOST_NAME}),
        "HostConfig": _host_config(spec, places, joined),
    }


def _host_config(spec: SandboxSpec, places: Places, joined: str | None) -> dict[str, object]:
    limits = spec.limits
    memory = limits.memory_mb << 20
    return {
        **hardening(limits.tmp_mb),
        **_network(spec, joined),
        "Mounts": list(_mounts(places)),
        "Memory": memory,
        "MemorySwap": memory,  # no swap beyond the memory limit
        "NanoCpus": int(limits.cpus * 1e9),
        "PidsLimit": limits.pids,
        "ShmSize": limits.tmp_mb << 20,
    }


def hardening(tmp_mb: int) -> dict[str, object]:
    """What every container of ours asks for, companions included."""
    return {
        "ReadonlyRootfs": True,
        "CapDrop": ["ALL"],
        "Privileged": False,
        "SecurityOpt": ["no-new-privileges:true", f"seccomp={rendered()}"],
        "Tmpfs": {INSIDE.tmp: f"rw,exec,nosuid,nodev,size={tmp_mb}m,nr_inodes=16384,mode=1777"},
        "IpcMode": "private",
        "CgroupnsMode": "private",
        "LogConfig": {"Type": "none", "Config": {}},
        "RestartPolicy": {"Name": "no"},
        "OomKillDisable": False,
        # named, because the defaults of engines differ, and some are higher than their own service may give
        "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}, {"Name": "nofile", "Soft": 16384, "Hard": 16384}],
    }


def _network(spec: SandboxSpec, joined: str | None) -> dict[str, object]:
    if joined:
        return {"NetworkMode": f"container:{joined}"}
    if spec.network.mode == "full":
        return {"NetworkMode": "default"}
    return isolated_network()


def isolated_network() -> dict[str, object]:
    """No interface but the loopback, and a resolver that leads nowhere: the host's own must not leak in."""
    return {"NetworkMode": "none", "Dns": ["127.0.0.1"], "DnsSearch": ["."]}


def _mounts(places: Places) -> Iterator[dict[str, object]]:
    replaced = {target for _, target in places.read_only}
    for name in _SURFACES:
        if f"/{name}" not in replaced:
            yield bind(places.surfaces[name], f"/{name}", read_only=name == "in")
    for source, target in places.read_only:
        yield bind(source, target, read_only=True)


def bind(source: Path, target: str, *, read_only: bool) -> dict[str, object]:
    """One bind mount; private, so that nothing mounted later shows through."""
    return {
        "Type": "bind",
        "Source": str(source),
        "Target": target,
        "ReadOnly": read_only,
        "BindOptions": {"Propagation": "rprivate"},
    }
