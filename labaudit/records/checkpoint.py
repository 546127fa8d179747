"""checkpoint_<label>.json: the state of a trial at a step end, by artifact."""

from __future__ import annotations

from typing import Literal

from labaudit.records.base import Record
from labaudit.records.fields import ArtifactRef, Count, DigestText, JsonObject, Many, Name, Positive, Text, Timestamp
from labaudit.records.hook_events import SpentBudgets
from labaudit.records.ids import Ids


class CheckpointSurface(Record):
    """One writable folder: its file manifest always, its archive where one was made."""

    name: Literal["workspace", "state", "memory", "out"]
    path: Text
    manifest_ref: ArtifactRef
    archive_ref: ArtifactRef | None
    files: Count
    bytes: Count
    base_label: Text | None = None
    changed: Count | None = None
    removed: Count | None = None
    method: Literal["full", "changed_files", "overlay_upper", "manifest_only"] | None = None


class Checkpoint(Record):
    """Surfaces, random state and spent budgets, and what made the runner save them."""

    schema_version: Literal["checkpoint_v1"] = "checkpoint_v1"
    label: Name
    ids: Ids
    attempt: Positive
    created_at: Timestamp
    resolved_digest: DigestText
    trigger: Literal["every_steps", "at_end", "control", "harness"]
    step_index: Count | None
    event_seq: Count | None
    hook_seq: Count | None = None
    control_version: DigestText | None = None
    surfaces: Many[CheckpointSurface]
    budgets: SpentBudgets
    rng_ref: ArtifactRef | None = None
    memory_ref: ArtifactRef | None = None
    restorable: bool | None = None
    ext: JsonObject | None = None
