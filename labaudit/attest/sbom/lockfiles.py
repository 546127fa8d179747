"""A harness's lockfile to its pinned packages, by the file's name; what cannot be read is said, not guessed."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from labaudit.attest.sbom.component import Component
from labaudit.errors import BadInput
from labaudit.store import atomic

MAX_LOCKFILE = 64 * 1024 * 1024
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*===?\s*([^\s;#\\]+)")
_NAME_ONLY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_OPTION = ("-", "git+", "http:", "https:", "file:", ".")


def read_lockfile(path: Path) -> list[Component]:
    """The packages that a lockfile pins; an unknown kind of file is BadInput with the known ones."""
    return parse_lockfile(path.name, atomic.read_bytes(path, max_bytes=MAX_LOCKFILE), where=str(path))


def parse_lockfile(name: str, data: bytes, *, where: str) -> list[Component]:
    """The same, from bytes."""
    reader = _reader(name)
    if reader is None:
        known = "requirements*.txt, uv.lock, poetry.lock, pdm.lock, Cargo.lock, package-lock.json, go.sum"
        raise BadInput(f"no reader for a lockfile called {name!r}", where=where, hint=f"known: {known}")
    try:
        return sorted(set(reader(data.decode("utf-8"))))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"is no lockfile of the kind its name says: {error}", where=where) from error


def _reader(name: str) -> Callable[[str], Iterator[Component]] | None:
    if name.endswith(".txt") or name == "requirements.lock":
        return _requirements
    readers = {
        "uv.lock": _python_toml,
        "poetry.lock": _python_toml,
        "pdm.lock": _python_toml,
        "Cargo.lock": _cargo,
        "package-lock.json": _npm,
        "npm-shrinkwrap.json": _npm,
        "go.sum": _go,
    }
    return readers.get(name)


def _requirements(text: str) -> Iterator[Component]:
    for raw in text.replace("\\\n", " ").splitlines():
        line = raw.split(" #", 1)[0].strip()
        if not line or line.startswith("#") or line.startswith(_OPTION):
            continue
        pinned = _REQUIREMENT.match(line)
        if pinned:
            yield Component(_python_name(pinned.group(1)), pinned.group(2), "pypi")
        elif match := _NAME_ONLY.match(line):
            # An unpinned requirement is a component whose version is unknown, not one that is absent.
            yield Component(_python_name(match.group(0)), "", "pypi")


def _python_toml(text: str) -> Iterator[Component]:
    for package in tomllib.loads(text).get("package", []):
        yield Component(_python_name(package["name"]), str(package.get("version", "")), "pypi")


def _cargo(text: str) -> Iterator[Component]:
    for package in tomllib.loads(text).get("package", []):
        checksum = str(package.get("checksum", ""))
        yield Component(
            package["name"], str(package["version"]), "cargo", sha256=checksum if len(checksum) == 64 else ""
        )


def _npm(text: str) -> Iterator[Component]:
    value: dict[str, Any] = json.loads(text)
    if "packages" in value:
        for path, package in value["packages"].items():
            if path and "version" in package:
                yield _npm_component(package.get("name") or path.rpartition("node_modules/")[2], package["version"])
        return
    yield from _npm_tree(value.get("dependencies", {}))


def _npm_tree(dependencies: dict[str, Any]) -> Iterator[Component]:
    for name, package in dependencies.items():
        yield _npm_component(name, str(package["version"]))
        yield from _npm_tree(package.get("dependencies", {}))


def _npm_component(name: str, version: str) -> Component:
    scope, _, bare = name.rpartition("/")
    return Component(bare, version, "npm", namespace=scope)


def _go(text: str) -> Iterator[Component]:
    for line in text.splitlines():
        if line.strip():
            module, version, _ = line.split()
            if not version.endswith("/go.mod"):
                namespace, _, name = module.rpartition("/")
                yield Component(name, version, "golang", namespace=namespace)


def _python_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
