"""The bundled image's file tree from Debian packages: plan, download, unpack, and no package scripts run.

apt checks the archive's signatures while it downloads; `dpkg-deb -x` unpacks without root. The same package set gives
the same tree, byte for byte.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labaudit.engines.images import bytecode
from labaudit.errors import EnvironmentLacks

ROOTS = ("python3", "dash", "coreutils", "ca-certificates", "base-files")
# Needed to install packages, not to run them.
LEFT_OUT = frozenset({"dpkg", "tar", "debconf", "openssl", "perl-base", "debianutils", "mawk", "base-passwd"})
DROPPED = ("usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/doc", "usr/share/lintian", "usr/share/bug")
MOUNT_POINTS = ("in", "out", "workspace", "state", "dataset", "harness", "tmp", "proc", "sys", "dev", "run", "etc")
USER_ID = 65532
_APT = (
    "-o", "Dir::State::status=/dev/null", "-o", "Debug::NoLocking=1", "-o", "APT::Install-Recommends=0",
    "-o", "APT::Sandbox::User=",
)  # fmt: skip
_PLANNED = re.compile(r"^Inst (\S+) \((\S+) ", re.MULTILINE)


@dataclass(frozen=True)
class Package:
    """One Debian package, by name and exact version."""

    name: str
    version: str


def plan_packages(roots: Sequence[str] = ROOTS) -> tuple[Package, ...]:
    """Every package that `roots` need, with versions, sorted. EnvironmentLacks where apt cannot tell."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise EnvironmentLacks("there is no apt-get or dpkg-deb")
    answer = _run(["apt-get", *_APT, "--simulate", "install", *roots])
    planned = {Package(name.split(":")[0], version) for name, version in _PLANNED.findall(answer)}
    wanted = {package for package in planned if package.name not in LEFT_OUT}
    if not {"python3", "libc6"} <= {package.name for package in wanted}:
        raise EnvironmentLacks("apt knows no python3 package; its lists may be empty", hint="run `apt-get update`")
    return tuple(sorted(wanted, key=lambda package: package.name))


def download(packages: Sequence[Package], folder: Path) -> list[Path]:
    """The packages' files in `folder`, in the order of their names."""
    _run(["apt-get", *_APT, "download", *(f"{p.name}={p.version}" for p in packages)], cwd=folder)
    files = sorted(folder.glob("*.deb"))
    if len(files) != len(packages):
        raise EnvironmentLacks(f"apt downloaded {len(files)} of {len(packages)} packages")
    return files


def assemble_tree(files: Sequence[Path], tree: Path) -> None:
    """Unpacks the packages into `tree` and adds what their install scripts would have made."""
    tree.mkdir()
    status = []
    for file in files:
        _run(["dpkg-deb", "-x", str(file), str(tree)])
        control = _run(["dpkg-deb", "-f", str(file)])
        name, rest = control.split("\n", 1)
        status.append(f"{name}\nStatus: install ok installed\n{rest.rstrip()}\n")
    for dropped in DROPPED:
        shutil.rmtree(tree / dropped, ignore_errors=True)
    (tree / "var/lib/dpkg").mkdir(parents=True, exist_ok=True)
    # scanners read the package list from here, so the image carries its own bill of materials
    (tree / "var/lib/dpkg/status").write_text("\n".join(status), encoding="utf-8")
    _certificates(tree)
    finish_tree(tree)


def finish_tree(tree: Path) -> None:
    """Mount points, accounts, resolver order and bytecode: the part that every bundled tree shares."""
    for name in MOUNT_POINTS:
        (tree / name).mkdir(exist_ok=True)
    etc = tree / "etc"
    (etc / "passwd").write_text(
        f"root:x:0:0:root:/:/usr/sbin/nologin\nharness:x:{USER_ID}:{USER_ID}:harness:/workspace:/bin/sh\n"
    )
    (etc / "group").write_text(f"root:x:0:\nharness:x:{USER_ID}:\n")
    (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    for name in ("hosts", "resolv.conf", "hostname"):
        (etc / name).write_text("")
    python = tree / "usr/bin/python"
    if (tree / "usr/bin/python3").exists() and not python.exists():
        python.symlink_to("python3")
    _normalise_modes(tree)


def compile_tree(tree: Path) -> str:
    """Adds bytecode with the tree's own interpreter; returns why not, or nothing where it worked."""
    for library in sorted(tree.glob("usr/lib/python3.*")) + sorted(tree.glob("usr/local/lib/python3.*")):
        prefix, interpreter = library.parent.parent, library.parent.parent / "bin" / library.name
        if not (library / "os.py").exists() or not interpreter.exists():
            continue
        loaders = sorted(tree.glob("lib/*/ld-linux*.so*")) + sorted(tree.glob("usr/lib/*/ld-linux*.so*"))
        start = [str(interpreter)]
        if loaders:  # the tree's own loader and libraries, so that nothing of the host's is used
            paths = f"{loaders[0].parent}:{tree / 'usr/lib' / loaders[0].parent.name}"
            start = [str(loaders[0]), "--library-path", paths, str(interpreter)]
        command = [*start, "-S", "-B", bytecode.__file__, f"{tree}/", str(library.relative_to(tree))]
        done = subprocess.run(
            command, env={"PYTHONHASHSEED": "0", "PYTHONHOME": str(prefix)}, capture_output=True, check=False
        )
        if done.returncode:
            return f"bytecode was not compiled: {done.stderr.decode(errors='replace')[-200:]}"
    return ""


def _certificates(tree: Path) -> None:
    """One bundle of all shipped certificates: what update-ca-certificates would write."""
    found = sorted((tree / "usr/share/ca-certificates").rglob("*.crt"))
    target = tree / "etc/ssl/certs/ca-certificates.crt"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(b"".join(path.read_bytes().rstrip() + b"\n" for path in found))


def _normalise_modes(tree: Path) -> None:
    """Readable by all, no set-id bits: the image's user is never its owner."""
    for path in tree.rglob("*"):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(0o755 if path.is_dir() or mode & 0o100 else 0o644)
    (tree / "tmp").chmod(0o1777)
    tree.chmod(0o755)


def _run(command: list[str], cwd: Path | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}, capture_output=True, check=False
    )
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines()
        raise EnvironmentLacks(f"{command[0]} failed: {reason[-1] if reason else done.returncode}")
    return done.stdout.decode(errors="replace")
