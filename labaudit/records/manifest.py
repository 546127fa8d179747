"""manifest.json: path, size and digest of every run-level file, and the run tree; what is signed."""

from __future__ import annotations

from typing import Literal

from labaudit.records.base import Record
from labaudit.records.fields import DigestText, Many, Text, Timestamp
from labaudit.records.parts import FileEntry, RunTree, Tool


class ManifestFile(FileEntry):
    """One run-level file."""

    media_type: Text


class Manifest(Record):
    """The subject of every attestation of a run."""

    schema_version: Literal["manifest_v1"] = "manifest_v1"
    run_id: Text
    created_at: Timestamp
    tool: Tool
    resolved_digest: DigestText
    run_tree: RunTree
    files: Many[ManifestFile]
