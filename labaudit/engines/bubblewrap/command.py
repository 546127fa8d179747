"""From a sandbox spec and an image's file tree to bubblewrap's argument list. Pure.

The root is an empty tmpfs, made read-only at the end, with the image's top-level folders bound read-only into it; so
mount points can be made for any surface and nothing of the host's own tree is ever shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from labaudit.engines.running.environment import harness_environment
from labaudit.engines.spec import INSIDE, SandboxSpec

INNER_ID = 65532
HOST_NAME = "sandbox"
# made by the sandbox itself, never taken from the image
_OWN = frozenset({"proc", "dev", "sys", "tmp", "run", "in", "out", "workspace", "state", "dataset", "harness"})
_OWN_FILES = frozenset({"hosts", "resolv.conf", "hostname"})
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Places:
    """Host paths that go into the sandbox."""

    program: str
    tree: Path
    surfaces: Mapping[str, Path]
    read_only: tuple[tuple[Path, str], ...]
    etc: Path
    """A folder with hosts, resolv.conf and hostname of the sandbox's own."""


@dataclass(frozen=True)
class Descriptors:
    """Numbers of the pipes that bubblewrap inherits."""

    info: int
    seccomp: int


def bubblewrap_command(
    spec: SandboxSpec, places: Places, pipes: Descriptors, image_env: Mapping[str, str],
    *, own_network: bool, share_network: bool,
) -> list[str]:  # fmt: skip
    """The arguments after the program's name. `own_network`: the launcher has made the network namespace already."""
    words = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if not own_network and not share_network:
        words.append("--unshare-net")
    words += ["--uid", str(INNER_ID), "--gid", str(INNER_ID), "--hostname", HOST_NAME]
    words += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    words += _file_system(spec, places, share_network=share_network)
    for name, value in environment(spec, image_env).items():
        words += ["--setenv", name, value]
    words += ["--chdir", spec.workdir, "--info-fd", str(pipes.info), "--seccomp", str(pipes.seccomp)]
    return words


def environment(spec: SandboxSpec, image_env: Mapping[str, str]) -> dict[str, str]:
    """What the harness finds in its environment: the image's own, a few defaults, then the spec's."""
    return {"PATH": _PATH, **image_env, **harness_environment(spec)}


def _file_system(spec: SandboxSpec, places: Places, *, share_network: bool) -> Iterator[str]:
    yield from ("--tmpfs", "/")
    for entry in sorted(places.tree.iterdir()):
        if entry.name in _OWN:
            continue
        if entry.is_symlink():
            yield from ("--symlink", str(entry.readlink()), f"/{entry.name}")
        else:
            yield from ("--ro-bind", str(entry), f"/{entry.name}")
    for name in sorted(_OWN_FILES):
        target = places.tree / "etc" / name
        if target.exists() and not target.is_symlink() and not (share_network and name != "hostname"):
            yield from ("--ro-bind", str(places.etc / name), f"/etc/{name}")
        elif share_network and name == "resolv.conf" and target.exists():
            yield from ("--ro-bind", "/etc/resolv.conf", "/etc/resolv.conf")
    yield from ("--proc", "/proc", "--dev", "/dev")
    for scratch in (INSIDE.tmp, "/dev/shm"):  # noqa: S108, private to the sandbox
        yield from ("--perms", "1777", "--size", str(spec.limits.tmp_mb << 20), "--tmpfs", scratch)
    replaced = {target for _, target in places.read_only}
    for name, path in places.surfaces.items():
        if f"/{name}" not in replaced:
            yield from ("--ro-bind" if name == "in" else "--bind", str(path), f"/{name}")
    for source, point in places.read_only:
        yield from ("--ro-bind", str(source), point)
    yield from ("--remount-ro", "/", "--remount-ro", "/dev")
