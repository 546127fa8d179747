"""`CheckpointManager`: the surfaces of a trial to `checkpoint_<label>.json` and artifacts, and back.

The first checkpoint of a trial archives everything; later ones archive what changed since the one before. Restoring
builds the chain up again and then compares the result with the manifest, entry by entry.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labaudit.core.clock import Clock, rfc3339
from labaudit.core.digest import sha256_hex
from labaudit.errors import BadInput, Contradiction
from labaudit.evidence.recorder import Recorder
from labaudit.records.checkpoint import Checkpoint
from labaudit.records.ids import Ids
from labaudit.runner.checkpoints.archive import extract, remove_entry, write_archive
from labaudit.runner.checkpoints.tree import Tree, TreeEntry, list_tree, read_manifest
from labaudit.store import atomic
from labaudit.store.artifact_store import ArtifactStore
from labaudit.store.run_folder import TrialFolder

# The control file is the runner's; a restored trial gets one of its own.
NOT_STATE = frozenset({b"lab_control.json"})
MEMORY, RNG = "memory_snapshot", "rng_state"
MAX_PART = 64 << 20
TAR = "application/x-tar"


@dataclass(frozen=True)
class RuntimeState:
    """What is true of the trial besides its folders."""

    trigger: str
    step_index: int | None
    event_seq: int | None
    hook_seq: int | None = None
    control_version: str | None = None
    budgets: Mapping[str, int] = field(default_factory=dict)


class CheckpointManager:
    """Saves the checkpoints of one attempt."""

    def __init__(
        self, trial: TrialFolder, recorder: Recorder, ids: Ids, attempt: int, digest: str, clock: Clock
    ) -> None:
        self._trial = trial
        self._recorder = recorder
        self._ids = ids
        self._attempt = attempt
        self._digest = digest
        self._clock = clock
        self._last: dict[str, tuple[str, Tree]] = {}
        self._labels: set[str] = set()

    def save(self, label: str, surfaces: Mapping[str, Path], state: RuntimeState) -> Checkpoint:
        """Saves the folders `surfaces` (name to host path) under `label`; a label that is taken gets a number."""
        label = self._free(label)
        left_out: list[str] = []
        rows = []
        restorable = True
        for name, root in surfaces.items():
            row, tree, whole = self._surface(name, root, label)
            rows.append(row)
            left_out += [f"{name}/{sentence}" for sentence in tree.left_out]
            restorable &= whole
        parts = self._parts(surfaces.get("state"))
        checkpoint = Checkpoint.from_json(
            {
                "schema_version": "checkpoint_v1",
                "label": label,
                "ids": self._ids.to_json(),
                "attempt": self._attempt,
                "created_at": rfc3339(self._clock.now()),
                "resolved_digest": self._digest,
                "trigger": state.trigger,
                "step_index": state.step_index,
                "event_seq": state.event_seq,
                "surfaces": rows,
                "budgets": dict(state.budgets),
                "restorable": restorable,
                **({"hook_seq": state.hook_seq} if state.hook_seq is not None else {}),
                **({"control_version": state.control_version} if state.control_version is not None else {}),
                **parts,
                **({"ext": {"left_out": left_out[:100], "left_out_total": len(left_out)}} if left_out else {}),
            },
            where=f"checkpoint {label}",
        )
        data = checkpoint.to_bytes()
        atomic.write_bytes(self._trial.checkpoint(label), data, durable=False)
        self._recorder.record("checkpoint.saved", {"label": label, "sha256": sha256_hex(data), **_brief(checkpoint)})
        return checkpoint

    def _free(self, label: str) -> str:
        chosen, number = label, 1
        while chosen in self._labels:
            number += 1
            chosen = f"{label}-{number}"
        self._labels.add(chosen)
        return chosen

    def _surface(self, name: str, root: Path, label: str) -> tuple[dict[str, Any], Tree, bool]:
        base = self._last.get(name)
        tree = list_tree(root, skip=NOT_STATE if name == "state" else frozenset())
        before = {entry.path: entry for entry in base[1].entries} if base else {}
        changed = [entry for entry in tree.entries if before.get(entry.path) != entry]
        now = {entry.path for entry in tree.entries}
        removed = [path for path in before if path not in now]
        archive, whole = self._archive(root, changed, f"checkpoint {label} {name}")
        self._last[name] = (label, tree)
        row: dict[str, Any] = {
            "name": name,
            "path": f"/{name}",
            "manifest_ref": self._put(tree.manifest(), "application/json", f"checkpoint {label} manifest"),
            "archive_ref": archive,
            "files": tree.files,
            "bytes": tree.size,
            "method": "changed_files" if base else "full",
        }
        if base:
            row.update(base_label=base[0], changed=len(changed), removed=len(removed))
        return row, tree, whole

    def _archive(self, root: Path, entries: list[TreeEntry], role: str) -> tuple[str, bool]:
        """The archive's reference, and whether it holds the files as they are (nothing was redacted)."""
        redactor = self._recorder.redactor
        touched = False

        def clean(data: bytes) -> bytes:
            nonlocal touched
            kept = redactor.apply(data)
            touched |= kept.applied
            return kept.data

        with tempfile.TemporaryFile() as spool:
            write_archive(root, entries, spool, clean=clean if redactor.active else None)
            spool.seek(0)
            reference = self._recorder.store.put(spool, TAR, {"applied": touched}, durable=False)
        self._recorder.references.setdefault(reference, role)
        return reference, not touched

    def _parts(self, state: Path | None) -> dict[str, str]:
        """Memory snapshot and random state as artifacts of their own, where the harness left such files in /state."""
        found: dict[str, str] = {}
        for key, name in (("memory_ref", MEMORY), ("rng_ref", RNG)):
            path = state / name if state is not None else None
            with suppress(PermissionError):  # the tree lists it as left out
                if path is not None and path.is_file() and not path.is_symlink() and path.stat().st_size <= MAX_PART:
                    found[key] = self._put(path.read_bytes(), "application/octet-stream", f"checkpoint {name}")
        return found

    def _put(self, data: bytes, content_type: str, role: str) -> str:
        kept = self._recorder.redactor.apply(data)
        reference = self._recorder.store.put(kept.data, content_type, {"applied": kept.applied}, durable=False)
        self._recorder.references.setdefault(reference, role)
        return reference


def read_checkpoints(trial: TrialFolder) -> dict[str, Checkpoint]:
    """The checkpoints of a trial by label, in the order of their steps."""
    found: list[Checkpoint] = []
    if trial.checkpoints.is_dir():
        paths = sorted(trial.checkpoints.glob("checkpoint_*.json"))
        found = [Checkpoint.from_bytes(atomic.read_bytes(path), where=str(path)) for path in paths]
    found.sort(key=lambda item: (item.step_index is None, item.step_index or 0, item.label))
    return {item.label: item for item in found}


def restore(
    trial: TrialFolder, store: ArtifactStore, label: str, targets: Mapping[str, Path], *, max_bytes: int
) -> Checkpoint:
    """Puts the surfaces of a checkpoint into empty folders; the result is compared with its manifest."""
    known = read_checkpoints(trial)
    checkpoint = known.get(label)
    if checkpoint is None:
        hint = f"there are {', '.join(known)}" if known else "the trial saved none"
        raise BadInput(f"there is no checkpoint {label!r}", where=trial.trial_id, hint=hint)
    if checkpoint.ids.trial_id != trial.trial_id:
        raise Contradiction("the checkpoint belongs to another trial", where=str(trial.checkpoint(label)))
    if checkpoint.restorable is False:
        raise BadInput(f"checkpoint {label} was redacted and cannot be restored", where=trial.trial_id)
    for surface in checkpoint.surfaces:
        target = targets.get(surface.name)
        if target is None:
            continue
        for step in _chain(known, label, surface.name):
            _apply(store, known, step, surface.name, target, max_bytes)
        wanted = read_manifest(store.get(surface.manifest_ref), where=f"manifest of {label}")
        if list_tree(target, skip=NOT_STATE).entries != wanted:
            said = f"the restored {surface.name} is not what checkpoint {label} lists"
            raise Contradiction(said, where=trial.trial_id)
    return checkpoint


def _chain(known: Mapping[str, Checkpoint], label: str, name: str) -> list[str]:
    """The labels from the full checkpoint to this one."""
    chain: list[str] = []
    at: str | None = label
    while at is not None:
        if at in chain or at not in known:
            raise Contradiction(f"checkpoint {label} rests on {at!r}, which is not there", where=f"checkpoint {label}")
        chain.append(at)
        at = next((item.base_label for item in known[at].surfaces if item.name == name), None)
    return chain[::-1]


def _apply(
    store: ArtifactStore, known: Mapping[str, Checkpoint], label: str, name: str, target: Path, max_bytes: int
) -> None:
    surface = next(item for item in known[label].surfaces if item.name == name)
    manifest = read_manifest(store.get(surface.manifest_ref), where=f"manifest of {label}")
    wanted = {entry.path: entry.kind for entry in manifest}
    for entry in reversed(list_tree(target, skip=NOT_STATE).entries):
        if wanted.get(entry.path) != entry.kind:
            remove_entry(target, entry.path)
    if surface.archive_ref is not None:
        with store.open(surface.archive_ref) as stream:
            extract(stream, target, max_bytes=max_bytes, where=f"archive of checkpoint {label}")


def _brief(checkpoint: Checkpoint) -> dict[str, object]:
    return {
        "trigger": checkpoint.trigger,
        "step_index": checkpoint.step_index,
        "surfaces": [{"name": s.name, "files": s.files, "bytes": s.bytes} for s in checkpoint.surfaces],
    }
