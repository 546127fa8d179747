"""The lab folder `.lab/`: its runs by name, prefix, `latest` or path; keys, trust, registry, lineage, log."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput, LabauditError
from labaudit.store import atomic
from labaudit.store.run_folder import RunFolder, TrialFolder

ENVIRONMENT_VARIABLE = "LABAUDIT_DIR"
DEFAULT_NAME = ".lab"
_RUN_ID = re.compile(r"run-(?P<time>\d{8}T\d{6}Z)-[0-9a-f]{8}(?:-(?P<number>\d+))?")


class LabFolder:
    """One lab's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs_folder = path / "runs"
        self.keys = path / "keys"
        self.signing_key = self.keys / "labaudit.key"
        self.public_key = self.keys / "labaudit.pub"
        self.log_key = self.keys / "labaudit-log.key"
        self.trust = path / "trust"
        self.sites = path / "sites"
        self.sessions = path / "sessions"
        self.registry = path / "registry.jsonl"
        self.lineage = path / "lineage.jsonl"
        self.log = path / "log"

    @classmethod
    def locate(cls, given: str | Path | None = None) -> LabFolder:
        """The folder given, else that of LABAUDIT_DIR, else `.lab` here."""
        path = Path(given or os.environ.get(ENVIRONMENT_VARIABLE) or DEFAULT_NAME)
        if path.exists() and not path.is_dir():
            raise BadInput("is no folder", where=str(path), hint=f"--lab-dir and {ENVIRONMENT_VARIABLE} name a folder")
        return cls(path)

    def named(self, run_id: str) -> str:
        """What a command line has to say to find this run from here: its id, and the lab if it is not the usual."""
        usual = self.path == LabFolder.locate().path
        return run_id if usual else f"{run_id} --lab-dir {shlex.quote(str(self.path))}"

    def home_of(self, run: RunFolder) -> LabFolder:
        """The lab that a run lies in, whose keys, lock and half-done trials are the run's; this one for a stray run."""
        home = LabFolder(run.path.absolute().parent.parent)
        if run.path.absolute().parent != home.runs_folder or not home.registry.is_file():
            return self
        return self if home.path == self.path.absolute() else home

    def run_ids(self) -> list[str]:
        """All runs by the names of their folders, oldest first."""
        if not self.runs_folder.is_dir():
            return []
        found = (path for path in self.runs_folder.iterdir() if path.is_dir() and not path.name.startswith("."))
        return [path.name for path in sorted(found, key=_age)]

    def new_run(self, run_id: str) -> RunFolder:
        """A fresh folder for this id, `-2` and so on if it is taken."""
        try:
            self.runs_folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise atomic.explain(error, self.runs_folder) from error
        for suffix in ("", *(f"-{number}" for number in range(2, 10_000))):
            path = self.runs_folder / (run_id + suffix)
            try:
                path.mkdir()
            except FileExistsError:
                continue
            except OSError as error:
                raise atomic.explain(error, path) from error
            return RunFolder(path)
        raise BadInput(f"ten thousand runs are called {run_id}", where=str(self.runs_folder))

    def find_run(self, name: str) -> RunFolder:
        """The run that an id, a unique prefix, `latest` or a path names."""
        if not name:
            raise BadInput("a run's name is empty", hint="an id, the start of one, `latest` or a path")
        as_path = Path(name)
        if ("/" in name or name in {".", ".."}) and as_path.is_dir():
            return RunFolder(as_path.resolve() if name in {".", ".."} else as_path)
        known = self.run_ids()
        if name == "latest":
            if not known:
                hint = "start one: labaudit run experiment.yaml"
                raise BadInput("this lab has no run yet", where=str(self.path), hint=hint)
            return RunFolder(self.runs_folder / known[-1])
        if name in known:
            return RunFolder(self.runs_folder / name)
        matches = [run_id for run_id in known if run_id.startswith(name)]
        if len(matches) == 1:
            return RunFolder(self.runs_folder / matches[0])
        if as_path.is_dir():
            return RunFolder(as_path)
        if matches:
            raise BadInput(f"{name!r} fits {len(matches)} runs: {', '.join(matches[:4])}", hint="give more of the id")
        hint = "`labaudit runs` lists them; `latest` is the newest"
        raise BadInput(f"there is no run {name!r}", where=str(self.runs_folder), hint=hint)

    def find_trial(self, name: str) -> tuple[RunFolder, TrialFolder]:
        """The trial that `RUN/TRIAL` names; a bare trial id will do while it is unique."""
        run_name, _, trial_name = name.rpartition("/")
        if run_name:
            run = self.find_run(run_name)
            return run, _trial_of(run, trial_name)
        found = [
            (run, trial)
            for run in map(RunFolder, (self.runs_folder / run_id for run_id in self.run_ids()))
            for trial in _matching(run, trial_name)
        ]
        if len(found) == 1:
            return found[0]
        if not found:
            raise BadInput(f"there is no trial {name!r}", where=str(self.runs_folder), hint="name it RUN/TRIAL")
        places = ", ".join(f"{run.run_id}/{trial.trial_id}" for run, trial in found[:3])
        raise BadInput(f"{name!r} fits {len(found)} trials: {places}", hint="name it RUN/TRIAL")

    def runs(self) -> Iterator[RunFolder]:
        """All runs, oldest first."""
        return (RunFolder(self.runs_folder / run_id) for run_id in self.run_ids())


def _age(folder: Path) -> tuple[str, int, str]:
    """What sorts runs by age: the time in an id, then the number of a run that found its id taken.

    A folder that was renamed is as old as the id that its manifest keeps.
    """
    match = _RUN_ID.fullmatch(folder.name) or _RUN_ID.fullmatch(_sealed_id(folder))
    return (match["time"], int(match["number"] or 1), folder.name) if match else ("", 0, folder.name)


def _sealed_id(folder: Path) -> str:
    try:
        return str(parse_object(atomic.read_bytes(RunFolder(folder).manifest)).get("run_id", ""))
    except LabauditError:
        return ""


def _trial_of(run: RunFolder, name: str) -> TrialFolder:
    matches = _matching(run, name)
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise BadInput(f"run {run.run_id} has no trial {name!r}", hint=f"see {run.schedule.name} in its folder")
    raise BadInput(f"{name!r} fits {len(matches)} trials of run {run.run_id}", hint="give more of the id")


def _matching(run: RunFolder, name: str) -> list[TrialFolder]:
    exact = run.trial(name)
    if name and exact.path.is_dir():
        return [exact]
    return [trial for trial in run.trial_folders() if name and trial.trial_id.startswith(name)]
