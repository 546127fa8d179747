"""A sealed run to whether its analysis follows from its own trial files.

Everything is computed again in a folder of its own and compared file by file; the run is only read. Two things may
make bytes differ without a contradiction, and the verdict names them: another version of the Parquet writer, and
another processor or mathematical library, whose logarithms and quantiles end in other digits. Then the content is
compared, numbers to nine digits.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from labaudit.analysis.columns import first_difference
from labaudit.analysis.runner import Analysis, AnalysisRunner, write_analysis
from labaudit.core.strict_json import parse_json
from labaudit.errors import BadInput
from labaudit.store import atomic
from labaudit.store.run_folder import RunFolder

Status = Literal["equal", "same_content", "differs", "missing", "unexpected"]
CONTRADICTIONS: frozenset[Status] = frozenset({"differs", "missing", "unexpected"})


@dataclass(frozen=True)
class FileVerdict:
    """One file of `analysis/`: as recomputed, or not, and the first place where it is not."""

    path: str
    status: Status
    detail: str = ""

    def as_json(self) -> dict[str, str]:
        """For `--json`."""
        return {"path": self.path, "status": self.status, "detail": self.detail}


@dataclass(frozen=True)
class Recomputed:
    """What came out, and how it compares with what is stored."""

    analysis: Analysis
    files: tuple[FileVerdict, ...]

    @property
    def agrees(self) -> bool:
        """No file contradicts the trials."""
        return not any(verdict.status in CONTRADICTIONS for verdict in self.files)


def recompute(run: RunFolder, *, processes: int = 1, keep_in: Path | None = None) -> Recomputed:
    """The analysis again, compared with the stored one; `keep_in` gets a copy of what was recomputed."""
    analysis = AnalysisRunner(run, processes=processes).run()
    with tempfile.TemporaryDirectory(prefix="labaudit-analysis-") as folder:
        fresh = RunFolder(Path(folder))
        write_analysis(analysis, fresh)
        verdicts = tuple(compare_folders(run.analysis, fresh.analysis))
        if keep_in is not None:
            put_into(fresh.analysis, keep_in)
    return Recomputed(analysis, verdicts)


def write_elsewhere(analysis: Analysis, folder: Path) -> None:
    """The files of `analysis/`, directly in `folder`."""
    with tempfile.TemporaryDirectory(prefix="labaudit-analysis-") as temporary:
        fresh = RunFolder(Path(temporary))
        write_analysis(analysis, fresh)
        put_into(fresh.analysis, folder)


def put_into(made: Path, folder: Path) -> None:
    """Copies a made folder to where the user wants it."""
    refuse_occupied(folder)
    for path in sorted(made.rglob("*")):
        if path.is_file():
            with path.open("rb") as source, atomic.replacing(folder / path.relative_to(made)) as stream:
                shutil.copyfileobj(source, stream)


def refuse_occupied(folder: Path) -> None:
    """What is in the way of `--out` is an error, never overwritten."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput("is there already and not empty", where=str(folder), hint="name another folder with --out")


def compare_folders(stored: Path, fresh: Path) -> Iterator[FileVerdict]:
    """A verdict per file that is on either side, by path."""
    ours, theirs = _files(fresh), _files(stored)
    for name in sorted({*ours, *theirs}):
        if name not in theirs:
            yield FileVerdict(name, "missing", "recomputed, but the run has no such file")
        elif name not in ours:
            yield FileVerdict(name, "unexpected", "in the run, but no analysis writes it")
        else:
            yield _compare(name, theirs[name], ours[name])


def _files(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        return {}
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}


def _compare(name: str, stored: Path, fresh: Path) -> FileVerdict:
    first, second = stored.read_bytes(), fresh.read_bytes()
    if first == second:
        return FileVerdict(name, "equal")
    if stored.suffix == ".parquet":
        where = first_difference(stored, fresh)
        if where is None:
            return FileVerdict(name, "same_content", "the same rows; the bytes are another writer's")
        return FileVerdict(name, "differs", where)
    parts = (first.splitlines(), second.splitlines()) if stored.suffix == ".jsonl" else ([first], [second])
    if len(parts[0]) == len(parts[1]) and all(_agree(_parsed(a), _parsed(b)) for a, b in zip(*parts, strict=True)):
        return FileVerdict(name, "same_content", "the same values to nine digits, in other bytes")
    if stored.suffix == ".jsonl":
        return FileVerdict(name, "differs", _first_line(*parts))
    return FileVerdict(name, "differs", _first_place(_parsed(first), _parsed(second), ""))


def _agree(stored: object, fresh: object) -> bool:
    """Equal values, numbers to nine digits."""
    if isinstance(stored, dict) and isinstance(fresh, dict):
        return stored.keys() == fresh.keys() and all(_agree(stored[key], fresh[key]) for key in stored)
    if isinstance(stored, list) and isinstance(fresh, list):
        return len(stored) == len(fresh) and all(_agree(a, b) for a, b in zip(stored, fresh, strict=True))
    if isinstance(stored, bool) or isinstance(fresh, bool):
        return stored is fresh
    if isinstance(stored, int) and isinstance(fresh, int):
        return stored == fresh
    if isinstance(stored, (int, float)) and isinstance(fresh, (int, float)):
        return math.isclose(stored, fresh, rel_tol=1e-9, abs_tol=1e-12)
    return type(stored) is type(fresh) and stored == fresh


def _parsed(data: bytes) -> object:
    try:
        return parse_json(data)
    except BadInput as error:
        return _Unreadable(error.what)


@dataclass(frozen=True)
class _Unreadable:
    what: str


def _first_line(stored: list[bytes], fresh: list[bytes]) -> str:
    for number, (first, second) in enumerate(zip(stored, fresh, strict=False), start=1):
        if first != second and not _agree(_parsed(first), _parsed(second)):
            return f"line {number}{_first_place(_parsed(first), _parsed(second), '')}"
    return f"{len(stored)} lines stored, {len(fresh)} recomputed"


def _first_place(stored: object, fresh: object, place: str) -> str:
    """The first key at which two JSON values part, and both sides of it."""
    if isinstance(stored, _Unreadable):
        return f"{place}: the stored text is no JSON ({stored.what})"
    if isinstance(stored, dict) and isinstance(fresh, dict):
        for key in sorted({*stored, *fresh}):
            if key not in stored or key not in fresh:
                return f"{place}.{key}: {'only recomputed' if key not in stored else 'only stored'}"
            if not _agree(stored[key], fresh[key]):
                return _first_place(stored[key], fresh[key], f"{place}.{key}")
    if isinstance(stored, list) and isinstance(fresh, list):
        for number, (first, second) in enumerate(zip(stored, fresh, strict=False)):
            if not _agree(first, second):
                return _first_place(first, second, f"{place}[{number}]")
        return f"{place}: {len(stored)} entries stored, {len(fresh)} recomputed"
    if stored == fresh:
        return f"{place}: the same values in another form"
    return f"{place}: {_short(stored)} stored, {_short(fresh)} recomputed"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
