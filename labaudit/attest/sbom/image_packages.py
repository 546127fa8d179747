"""The files of an image to its packages: dpkg, apk and Python distributions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.parser import BytesHeaderParser
from pathlib import Path
from typing import BinaryIO

from labaudit.attest.sbom.component import Component
from labaudit.attest.sbom.image_tree import read_wanted

_DPKG = "var/lib/dpkg/status"
_DPKG_PARTS = "var/lib/dpkg/status.d/"
_APK = "lib/apk/db/installed"
_OTHER_MANAGERS = {
    "var/lib/rpm/Packages": "rpm",
    "var/lib/rpm/rpmdb.sqlite": "rpm",
    "usr/lib/sysimage/rpm/rpmdb.sqlite": "rpm",
    "usr/lib/sysimage/rpm/Packages.db": "rpm",
}
_DISTRIBUTIONS = (".dist-info/METADATA", ".egg-info/PKG-INFO", ".egg-info")


@dataclass(frozen=True)
class ImagePackages:
    """What was found, the managers that were seen, and those that are known but not read here."""

    components: tuple[Component, ...]
    managers: tuple[str, ...]
    unread: tuple[str, ...]


def read_image(source: Path | BinaryIO) -> ImagePackages:
    """All packages that the image's own databases name."""
    files = read_wanted(source, _is_wanted)
    managers, found = [], []
    namespace = _distribution_name(files)
    dpkg = [data for path, data in sorted(files.items()) if path == _DPKG or _is_dpkg_part(path)]
    if dpkg:
        managers.append("dpkg")
        found += [part for data in dpkg for part in dpkg_components(data, namespace or "debian")]
    if _APK in files:
        managers.append("apk")
        found += apk_components(files[_APK], namespace or "alpine")
    python = list(python_components(files))
    if python:
        managers.append("python")
        found += python
    unread = sorted({name for path, name in _OTHER_MANAGERS.items() if path in files})
    return ImagePackages(tuple(sorted(set(found))), tuple(managers), tuple(unread))


def _is_wanted(path: str) -> bool:
    return (
        path in (_DPKG, _APK, "etc/os-release", "usr/lib/os-release")
        or path in _OTHER_MANAGERS
        or _is_dpkg_part(path)
        or path.endswith(_DISTRIBUTIONS)
    )


def _is_dpkg_part(path: str) -> bool:
    return path.startswith(_DPKG_PARTS) and not path.endswith(".md5sums")


def _distribution_name(files: Mapping[str, bytes]) -> str:
    text = files.get("etc/os-release", files.get("usr/lib/os-release", b"")).decode("utf-8", "replace")
    for line in text.splitlines():
        if line.startswith("ID="):
            return line[3:].strip().strip('"')
    return ""


def dpkg_components(data: bytes, namespace: str) -> Iterator[Component]:
    """Installed packages of a dpkg status file."""
    for stanza in _stanzas(data):
        # status.d files of minimal images carry no Status line; everything listed there is installed.
        status = stanza.get("Status", "install ok installed").split()
        if status[-1:] == ["installed"] and "Package" in stanza:
            yield Component(
                stanza["Package"],
                stanza.get("Version", ""),
                "deb",
                architecture=stanza.get("Architecture", ""),
                namespace=namespace,
            )


def apk_components(data: bytes, namespace: str) -> Iterator[Component]:
    """Packages of an apk database."""
    for block in data.decode("utf-8", "replace").split("\n\n"):
        fields = dict(line.split(":", 1) for line in block.splitlines() if len(line) > 1 and line[1] == ":")
        if "P" in fields:
            yield Component(
                fields["P"],
                fields.get("V", ""),
                "apk",
                architecture=fields.get("A", ""),
                namespace=namespace,
                licence=fields.get("L", ""),
            )


def python_components(files: Mapping[str, bytes]) -> Iterator[Component]:
    """Python distributions by their own metadata."""
    for path, data in sorted(files.items()):
        if not path.endswith(_DISTRIBUTIONS):
            continue
        headers = BytesHeaderParser().parsebytes(data)
        name, version = headers.get("Name"), headers.get("Version")
        if name and version:
            yield Component(name.strip().lower().replace("_", "-"), version.strip(), "pypi")


def _stanzas(data: bytes) -> Iterable[dict[str, str]]:
    fields: dict[str, str] = {}
    for line in [*data.decode("utf-8", "replace").splitlines(), ""]:
        if not line.strip():
            if fields:
                yield fields
            fields = {}
        elif not line[0].isspace() and ":" in line:
            key, value = line.split(":", 1)
            fields[key] = value.strip()
