"""A running trial's note in the lab folder: who runs it, and where an operator's requests are taken.

`labaudit control` appends requests here; the runner that owns the trial takes them up, so that one writer alone numbers
and logs what goes into the control file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import orjson

from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput, LabauditError
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder

NOTES = "running"


def notes_folder(lab: LabFolder, run_id: str) -> Path:
    """Where the notes of a run's running trials stand."""
    return lab.path / "live" / run_id / NOTES


class LiveFile:
    """The note of one running trial; gone when the block ends."""

    def __init__(self, folder: Path, trial_id: str) -> None:
        self.note = folder / f"{trial_id}.json"
        self.requests = folder / f"{trial_id}.requests.jsonl"
        self._taken = 0

    def __enter__(self) -> LiveFile:
        self.requests.unlink(missing_ok=True)
        atomic.write_json(self.note, {"pid": os.getpid(), "trial_id": self.note.stem}, durable=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.note.unlink(missing_ok=True)
        self.requests.unlink(missing_ok=True)

    def new_requests(self) -> list[tuple[str, str | None]]:
        """(action, label) of the requests that came since the last call."""
        try:
            size = self.requests.stat().st_size
            if size <= self._taken:
                return []
            with self.requests.open("rb") as stream:
                stream.seek(self._taken)
                data = stream.read(size - self._taken)
        except FileNotFoundError:
            return []
        self._taken += len(data)
        found = []
        for line in data.splitlines():
            value = orjson.loads(line)
            found.append((str(value["action"]), value.get("label")))
        return found


def running_trials(lab: LabFolder, run_id: str) -> Iterator[str]:
    """Ids of the trials of a run that a living process runs now."""
    folder = notes_folder(lab, run_id)
    if not folder.is_dir():
        return
    for note in sorted(folder.glob("*.json")):
        try:
            pid = parse_object(atomic.read_bytes(note), where=str(note)).get("pid")
        except LabauditError:
            continue
        if isinstance(pid, int) and _alive(pid):
            yield note.stem


def request(lab: LabFolder, run_id: str, trial_id: str, action: str, label: str | None) -> None:
    """Hands an operator's request to the runner of a trial."""
    if trial_id not in set(running_trials(lab, run_id)):
        hint = f"`labaudit status {run_id}` lists what runs"
        raise BadInput(f"trial {trial_id} is not running", where=run_id, hint=hint)
    value = {"action": action, **({"label": label} if label is not None else {})}
    atomic.append_line(notes_folder(lab, run_id) / f"{trial_id}.requests.jsonl", value)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
