"""One package in a bill of materials, and the thing that the bill is about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

_NOT_IN_ID = re.compile(r"[^A-Za-z0-9.-]+")


@dataclass(frozen=True, order=True)
class Component:
    """A package by name, version and ecosystem (the type of its package URL: deb, apk, pypi, npm, cargo, golang)."""

    name: str
    version: str
    kind: str
    architecture: str = ""
    namespace: str = ""
    licence: str = ""
    sha256: str = ""

    @property
    def purl(self) -> str:
        """The package URL."""
        parts = [self.kind]
        if self.namespace:
            parts += [quote(part, safe="") for part in self.namespace.split("/")]
        name = quote(self.name, safe="")
        version = f"@{quote(self.version, safe='+~:')}" if self.version else ""
        qualifiers = f"?arch={quote(self.architecture, safe='')}" if self.architecture else ""
        return f"pkg:{'/'.join([*parts, name])}{version}{qualifiers}"

    @property
    def spdx_id(self) -> str:
        """An SPDX element id; the writer adds a number where two would be equal."""
        text = "-".join(part for part in (self.kind, self.namespace, self.name, self.version) if part)
        return "SPDXRef-Package-" + _NOT_IN_ID.sub("-", text)


@dataclass(frozen=True)
class SbomSubject:
    """What a bill is about: an image or a harness, by digest."""

    kind: str
    name: str
    digest: str

    @property
    def hex(self) -> str:
        """The digest's 64 hex digits."""
        return self.digest.removeprefix("sha256:")
