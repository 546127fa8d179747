"""What a reader of one format is, and what a caller may ask of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from labaudit.importers.results import ForeignResults
from labaudit.importers.source_files import SourceFiles


@dataclass(frozen=True)
class ReadOptions:
    """Choices of the caller."""

    only: tuple[str, ...] = ()
    """Patterns of variant labels; empty for all."""
    mapping: dict[str, str] = field(default_factory=dict)
    """For tables: field to column."""
    reader: str = "raw"
    """For inspect: `raw`, or `inspect` for the tool's own reader."""

    def wants(self, label: str) -> bool:
        """True for a variant that was asked for."""
        return not self.only or any(fnmatchcase(label, pattern) for pattern in self.only)


class Reader(Protocol):
    """Turns paths into results; BadInput when there is nothing of its format."""

    def __call__(self, paths: Sequence[Path], files: SourceFiles, options: ReadOptions) -> ForeignResults:
        """Reads everything at the paths."""
        ...
