"""What every trial of a run shares, as one value."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from labaudit.core.clock import Clock
from labaudit.core.redaction import Redactor, Rule
from labaudit.engines.protocol import Engine
from labaudit.planning.dataset import Dataset
from labaudit.records.fields import EvidenceOrigin
from labaudit.records.resolved import ResolvedExperiment
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder


@dataclass(frozen=True)
class RunOptions:
    """Choices that change how a run is executed but not what it is about."""

    workers: int = 1
    allow_missing_harness_manifest: bool = False
    pooled_proxy: bool = False


@dataclass(frozen=True)
class LinkedTrial:
    """What a replay or a fork adds to its one trial."""

    ext: Mapping[str, object]
    """Goes into `trial_input.json` under `ext`."""
    boundaries: Path | None = None
    """A folder with the recorded boundaries, shown read-only at /replay."""
    until_step: int | None = None
    """Boundaries of this step and later ones are called live; None replays them all."""
    restore: Callable[[Mapping[str, Path]], None] | None = None
    """Fills the surfaces (name to host folder) from a checkpoint before anything runs."""


@dataclass(frozen=True)
class RunContext:
    """Everything fixed before the first trial."""

    lab: LabFolder
    run: RunFolder
    run_id: str
    resolved: ResolvedExperiment
    resolved_digest: str
    dataset: Dataset
    engine: Engine
    image_id: str
    harness_source: Path | None
    evaluator_sources: Mapping[str, Path]
    dataset_folder: Path
    """A folder that holds the dataset file alone, shown read-only at /dataset."""
    secrets: Mapping[str, str]
    clock: Clock
    options: RunOptions = RunOptions()
    cache: Path | None = None
    engine_facts: dict[str, object] = field(default_factory=dict)
    self_test: Mapping[str, object] | None = None
    """The egress self-test's cases for `state_inventory.json`, or None where none was due."""
    linked: LinkedTrial | None = None
    evidence_origin: EvidenceOrigin = "local"
    """`worker` where trials run elsewhere and are handed over."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set by Ctrl-C: running trials are stopped cleanly and recorded as lost attempts."""

    @property
    def live(self) -> Path:
        """Where attempts are staged while they run; gone when the run is sealed."""
        return live_folder(self.lab, self.run_id)

    def task(self, task_id: str) -> dict[str, object]:
        """The task with this id."""
        return self.dataset.tasks[self._positions[task_id]]

    def redactor(self) -> Redactor:
        """A fresh redactor (it counts, so each trial has its own)."""
        rules = [Rule.compile(rule.pattern, rule.mode) for rule in self.resolved.redaction.rules]
        return Redactor(rules, self.secrets)

    @property
    def _positions(self) -> dict[str, int]:
        cached: dict[str, int] | None = self.__dict__.get("_task_positions")
        if cached is None:
            cached = {task_id: index for index, task_id in enumerate(self.dataset.ids)}
            object.__setattr__(self, "_task_positions", cached)
        return cached


def live_folder(lab: LabFolder, run_id: str) -> Path:
    """The staging folder of one run."""
    return lab.path / "live" / run_id
