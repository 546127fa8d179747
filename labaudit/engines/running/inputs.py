"""The read-only inputs of a sandbox: dataset, harness and further mounts, staged so that the trial's user reads them.

A single file is shown inside the folder, under its own name: `/dataset/tasks.jsonl`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from labaudit.engines.host.staging import Staging
from labaudit.engines.spec import INSIDE, SandboxSpec


@dataclass(frozen=True)
class Inputs:
    """Host paths with the place where each is shown."""

    mounts: tuple[tuple[Path, str], ...]
    dataset: Path | None
    """The folder on the host that stands for /dataset."""
    harness: Path | None


def staged_inputs(spec: SandboxSpec, staging: Staging) -> Inputs:
    """Stages what the spec names. BadInput where something is not there."""
    mounts = [(staging.readable(mount.source), mount.target) for mount in spec.read_only]
    folders: dict[str, Path | None] = {"/dataset": None, "/harness": None}
    for source, point in ((spec.dataset, INSIDE.dataset), (spec.harness, INSIDE.harness)):
        if source is None or point is None:
            continue
        path = staging.readable(source)
        is_file = path.is_file()
        mounts.append((path, f"{point}/{path.name}" if is_file else point))
        folders[point] = path.parent if is_file else path
    return Inputs(tuple(mounts), folders["/dataset"], folders["/harness"])
