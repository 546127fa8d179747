"""Small shapes that several files contain: redaction, source provenance, file entries, events totals."""

from __future__ import annotations

from typing import Literal

from labaudit.records.base import Record
from labaudit.records.fields import Count, DigestText, GitCommit, Hex64, RedactionMode, Text


class Redaction(Record):
    """Whether redaction changed what is stored, and how."""

    applied: bool
    mode: RedactionMode | None = None


class SourceProvenance(Record):
    """How a source_digest came about: a git commit with its dirt, or a directory hash."""

    kind: Literal["git", "directory"]
    commit: GitCommit | None = None
    dirty: bool | None = None
    diff_digest: DigestText | None = None
    directory_digest: DigestText | None = None


class FileEntry(Record):
    """One file by path, size and content."""

    path: Text
    size: Count
    sha256: Hex64


class EventsTotals(Record):
    """What events.head and trial_record.json both say about an event log."""

    count: Count
    size: Count
    sha256: Hex64
    head: Hex64
    tree_root: Hex64


class Tool(Record):
    """The program that wrote a file."""

    name: Text
    version: Text


class RunTree(Record):
    """The RFC 6962 tree over all trial records."""

    size: Count
    root: Hex64


class RedactionRule(Record):
    """A pattern that must not be stored as it is."""

    pattern: Text
    mode: RedactionMode
