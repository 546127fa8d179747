"""The bundled image's file tree from this host's own interpreter, for hosts without apt.

Copies the interpreter, its standard library, a shell and a few tools, and every shared library that they load.
Its id depends on the host, which the image's notes say.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from labaudit.engines.images.debian import finish_tree
from labaudit.errors import EnvironmentLacks

TOOLS = ("sh", "cat", "ls", "sleep", "env", "true", "false", "mkdir", "rm", "cp", "mv", "echo", "head", "tail", "id")
_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")
_IGNORED = shutil.ignore_patterns("__pycache__", "site-packages", "dist-packages", "test", "tests", "idlelib", "*.a")


def host_tree(tree: Path) -> None:
    """Fills `tree` with a Python of its own, taken from the host."""
    if shutil.which("ldd") is None:
        raise EnvironmentLacks("there is no ldd to find shared libraries with", hint="install libc-bin, or apt")
    library = Path(sysconfig.get_path("stdlib"))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    interpreter = Path(sys.base_prefix, "bin", version)
    if not interpreter.exists() or not library.is_dir():
        raise EnvironmentLacks(f"the host's interpreter was not found at {interpreter}")
    prefix = tree / ("usr" if sys.base_prefix == "/usr" else "usr/local")
    (prefix / "bin").mkdir(parents=True)
    shutil.copy2(interpreter.resolve(), prefix / "bin" / version)
    (prefix / "bin/python3").symlink_to(version)
    shutil.copytree(library, prefix / "lib" / version, ignore=_IGNORED, symlinks=False)
    binaries = [prefix / "bin" / version, *(prefix / "lib" / version).rglob("*.so")]
    binaries += _tools(tree)
    _libraries(tree, binaries, Path(sys.base_prefix))
    certificates = Path("/etc/ssl/certs/ca-certificates.crt")
    if certificates.exists():
        (tree / "etc/ssl/certs").mkdir(parents=True)
        shutil.copy(certificates, tree / "etc/ssl/certs/ca-certificates.crt")
    finish_tree(tree)


def _tools(tree: Path) -> list[Path]:
    placed = []
    (tree / "bin").mkdir(exist_ok=True)
    for name in TOOLS:
        found = shutil.which(name, path="/usr/bin:/bin")
        if found:
            shutil.copy(Path(found).resolve(), tree / "bin" / name)
            placed.append(tree / "bin" / name)
    if not (tree / "bin/sh").exists():
        raise EnvironmentLacks("the host has no /bin/sh to put into the image")
    return placed


def _libraries(tree: Path, binaries: list[Path], base: Path) -> None:
    """Copies what the dynamic loader would load. Libraries of an interpreter with a prefix of its own go to /usr/lib:
    the loader looks there without being told."""
    for binary in binaries:
        listing = subprocess.run(["ldd", str(binary)], capture_output=True, check=False).stdout.decode(errors="replace")
        for found in _LIBRARY.findall(listing):
            source = Path(found)
            if source.is_relative_to(tree):
                continue
            moved = source.is_relative_to(base) and str(base) != "/usr"
            target = tree / "usr/lib" / source.name if moved else tree / found.lstrip("/")
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source.resolve(), target)
