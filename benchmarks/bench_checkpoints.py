"""An incremental checkpoint of a 100 MB workspace with 10 changed files, as a ratio to hashing the tree once.

Floor and checkpoint are taken in turn; the fastest of each are compared, which neighbours on the machine disturb least.
"""

from __future__ import annotations

import hashlib
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from labaudit.core.clock import SystemClock
from labaudit.core.digest import Digest
from labaudit.evidence.recorder import Recorder
from labaudit.records.ids import Ids
from labaudit.runner.checkpoints.checkpoint import CheckpointManager, RuntimeState
from labaudit.store.artifact_store import ArtifactStore
from labaudit.store.event_log import EventLog, LogIdentity
from labaudit.store.run_folder import TrialFolder

FILES, SIZE, ROUNDS = 1000, 100 << 20, 15


def hash_tree(root: Path) -> float:
    """The floor: every file read and hashed, nothing else."""
    began = time.perf_counter()
    for path in sorted(root.rglob("*")):
        if path.is_file():
            hasher = hashlib.sha256()
            with path.open("rb") as stream:
                while chunk := stream.read(1 << 20):
                    hasher.update(chunk)
            hasher.hexdigest()
    return time.perf_counter() - began


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        work, rng = folder / "work", random.Random(1)
        for number in range(FILES):
            path = work / f"d{number % 20}" / f"f{number}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(rng.randbytes(SIZE // FILES))
        digest = Digest.of(b"bench")
        trial = TrialFolder(folder / "trial")
        log = EventLog(trial.events, LogIdentity("r", "t", "v", "k", 0, 1, digest))
        recorder = Recorder(log, ArtifactStore(folder / "artifacts"))
        ids = Ids(run_id="r", trial_id="t", variant_id="v", task_id="k", repl_idx=0)
        manager = CheckpointManager(trial, recorder, ids, 1, digest, SystemClock())
        hash_tree(work)
        began = time.perf_counter()
        manager.save("full", {"workspace": work}, RuntimeState("every_steps", 0, 0))
        full = time.perf_counter() - began
        floors, saves = [], []
        for number in range(ROUNDS):
            for changed in range(10):
                (work / f"d{changed}" / f"f{changed}").write_bytes(rng.randbytes(SIZE // FILES))
            floors.append(hash_tree(work))
            began = time.perf_counter()
            manager.save(f"step-{number}", {"workspace": work}, RuntimeState("every_steps", number, 0))
            saves.append(time.perf_counter() - began)
        floor, save = min(floors), min(saves)
        print("| 100 MB in 1,000 files | seconds | ratio to hashing the tree | bound |")
        print("|---|---|---|---|")
        print(f"| hash every file (floor) | {floor:.3f} | 1.00 | |")
        print(f"| first checkpoint, everything archived | {full:.3f} | {full / floor:.2f} | |")
        print(f"| next checkpoint, 10 files changed | {save:.3f} | {save / floor:.2f} | 1.5 |")


if __name__ == "__main__":
    main()
