"""This machine, as resolution asks about it: the chosen engine, its images, and harnesses by digest."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

from labaudit.engines.protocol import Engine, ResolvedImage
from labaudit.errors import BadInput
from labaudit.harnesses.identity import archive_source, directory_digest, identify
from labaudit.network.policy import EgressPolicy
from labaudit.planning.surroundings import FoundHarness, FoundImage

# The one means that each engine has for each mode; `auto` takes it, any other word must be it.
MEANS = {
    ("docker", "none"): "docker_none",
    ("bubblewrap", "none"): "bubblewrap_netns",
    ("docker", "allowlist_enforced"): "unix_socket_proxy",
    ("bubblewrap", "allowlist_enforced"): "unix_socket_proxy",
}


class Machine:
    """Implements `planning.surroundings.Surroundings` with real lookups."""

    def __init__(self, engine: Engine, reason: str) -> None:
        self.engine = engine
        self.engine_name: str = engine.name
        self.engine_reason = reason
        self.found_image: ResolvedImage | None = None

    def image(self, reference: str | None) -> FoundImage:
        """The image by id; the process engine has none."""
        self.found_image = self.engine.resolve_image(reference)
        if self.engine.name == "process":
            return FoundImage(None, "none")
        return FoundImage(self.found_image.id, self.found_image.source if self.found_image.source != "host" else
                          "bundled")  # fmt: skip

    def harness(
        self, source: Path | None, command: Sequence[str], lockfile: Path | None, image_id: str | None
    ) -> FoundHarness:
        """Digests of the harness; without an image its interpreter is named too."""
        host = f"{platform.system()} {platform.machine()} python {platform.python_version()}"
        fingerprint = None if image_id else host
        found = identify(source=source, command=command, lockfile=lockfile, image_id=image_id, fingerprint=fingerprint)
        return FoundHarness(
            exec_digest=str(found.exec_digest),
            source_digest=str(found.source_digest) if found.source_digest else None,
            source_provenance=found.source_provenance,
            lockfile_digest=str(found.lockfile_digest) if found.lockfile_digest else None,
            runtime_fingerprint=found.runtime_fingerprint,
            archive=archive_source(source) if source is not None else None,
        )

    def folder_digest(self, folder: Path) -> str:
        """Names and content of a folder."""
        return str(directory_digest(folder))

    def check_network(self, mode: str, enforcement: str, hosts: Sequence[str], networks: Sequence[str]) -> None:
        """Early what would otherwise fail at the first trial."""
        if mode == "allowlist_enforced":
            EgressPolicy.parse(hosts, networks)
        elif hosts:
            hint = "set network.mode to allowlist_enforced, or remove the hosts"
            raise BadInput(f"allowed_hosts mean nothing with network mode {mode}", where="runtime.network", hint=hint)
        means = MEANS.get((self.engine.name, mode), "none")
        if enforcement not in {"auto", means}:
            raise BadInput(
                f"the {self.engine.name} engine has no enforcement {enforcement!r} for network mode {mode}",
                where="runtime.network.enforcement",
                hint=f"leave it out, or say {means}",
            )
