"""What resolution asks of the machine: engine, image, harness and folders, each to something with a digest.

Planning stands below engines and harnesses, so it is handed these answers instead of fetching them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class FoundImage:
    """An image by id; `id` is None where the engine runs none."""

    id: str | None
    origin: str


@dataclass(frozen=True)
class FoundHarness:
    """The digests of the program under test, and its source as an archive where that is small enough to keep."""

    exec_digest: str
    source_digest: str | None
    source_provenance: dict[str, object] | None
    lockfile_digest: str | None
    runtime_fingerprint: str | dict[str, object] | None
    archive: bytes | None


class Surroundings(Protocol):
    """The machine that an experiment is resolved on."""

    @property
    def engine_name(self) -> str:
        """The engine that was taken."""

    @property
    def engine_reason(self) -> str:
        """Why that one."""

    def image(self, reference: str | None) -> FoundImage:
        """The image that a name, id or archive stands for; None is the bundled one."""

    def harness(
        self, source: Path | None, command: Sequence[str], lockfile: Path | None, image_id: str | None
    ) -> FoundHarness:
        """The identity of the harness as it stands now."""

    def folder_digest(self, folder: Path) -> str:
        """The digest of a folder's names and content."""

    def check_network(self, mode: str, enforcement: str, hosts: Sequence[str], networks: Sequence[str]) -> None:
        """Raises BadInput for a host or network that no policy can express, or a means that this engine has not."""
