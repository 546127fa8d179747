"""A finished run folder to the values that summaries and statements are built from.

Sealing and verifying read the same way and build the same values, so that a claim is compared with what the evidence
gives, not with what a file says about itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from labaudit.core.digest import hex_of_reference
from labaudit.core.merkle import leaf_hash, root_of_hashes
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput
from labaudit.store.run_folder import RunFolder, TrialFolder

Json = dict[str, Any]
MAX_RECORD = 64 * 1024
RECEIPT = "receipt.json"
CONTRACT_FILES = frozenset({"run_record.json", "score_records.jsonl", "a2a_events.jsonl", "imported.json", RECEIPT})


@dataclass(frozen=True)
class RunFacts:
    """All that statements speak about. `digests` maps a run-level path to its SHA-256."""

    manifest: Json
    manifest_sha256: str
    resolved: Json
    inclusion: Json
    grades: Json
    summary: Json
    started_at: str | None
    digests: dict[str, str]
    documents: dict[str, Json]
    contract_files: dict[str, int] = field(default_factory=dict)
    """How many trials have which file of contract records, or a worker's receipt."""


@dataclass
class TrialTotals:
    """What is gathered from all trial records in one pass; `artifacts` holds digests as bytes."""

    leaves: list[bytes] = field(default_factory=list)
    heads: list[Json] = field(default_factory=list)
    artifacts: set[bytes] = field(default_factory=set)
    started_at: str | None = None
    has_hooks: bool = False
    contract_files: Counter[str] = field(default_factory=Counter)
    by_workers: int = 0
    """Trials that a worker executed, or that carry a worker's receipt."""

    def add_record(self, data: bytes, record: Json) -> None:
        """Takes in one trial record."""
        self.leaves.append(leaf_hash(data))
        events = record["events"]
        if events is not None:
            trial_id = record["ids"]["trial_id"]
            self.heads.append(
                {"trial_id": trial_id, "attempt": record["attempt"], "count": events["count"], "head": events["head"]}
            )
        started = record["started_at"]
        if started is not None and (self.started_at is None or started < self.started_at):
            self.started_at = started
        names = {item["path"] for item in record["files"]}
        self.has_hooks |= "harness_events.jsonl" in names
        self.contract_files.update(names & CONTRACT_FILES)
        self.by_workers += record["evidence_origin"] == "worker" or RECEIPT in names

    def add_artifact(self, line: Json) -> None:
        """Takes in one line of an artifacts.jsonl."""
        self.artifacts.add(bytes.fromhex(hex_of_reference(line["ref"])))

    @property
    def tree(self) -> Json:
        """`run_tree` of the manifest."""
        return {"size": len(self.leaves), "root": root_of_hashes(self.leaves).hex()}


def redaction_mode(sidecar: Json) -> str:
    """`none`, or the mode by which an artifact was redacted, from its sidecar."""
    redaction = sidecar.get("redaction")
    if not isinstance(redaction, dict) or not redaction.get("applied"):
        return "none"
    return str(redaction.get("mode") or "applied")


def artifact_store_root(digests: Iterable[bytes]) -> Json:
    """Count and RFC 6962 root over the sorted digests of all artifacts."""
    ordered = sorted(set(digests))
    return {"count": len(ordered), "root": root_of_hashes(leaf_hash(item) for item in ordered).hex()}


def redaction_counts(modes: Iterable[str]) -> dict[str, int]:
    """How many artifacts were redacted, by mode."""
    return dict(sorted(Counter(modes).items()))


def scheduled_trials(run: RunFolder) -> Iterator[TrialFolder]:
    """The trials in schedule order."""
    for number, row in enumerate(json_lines(run.schedule)):
        trial_id = row.get("trial_id")
        if not isinstance(trial_id, str) or not trial_id or "/" in trial_id or trial_id.startswith("."):
            raise BadInput("a schedule row names no trial", where=f"{run.schedule}:{number + 1}")
        yield run.trial(trial_id)


def read_totals(run: RunFolder) -> TrialTotals:
    """One pass over all trial records and artifact lists of a run."""
    totals = TrialTotals()
    if run.artifact_list.is_file():
        for line in json_lines(run.artifact_list):
            totals.add_artifact(line)
    for trial in scheduled_trials(run):
        try:
            data = trial.trial_record.read_bytes()
        except FileNotFoundError as error:
            hint = "every scheduled trial has a record, lost ones too"
            raise BadInput("the trial has no record", where=str(trial.trial_record), hint=hint) from error
        if len(data) > MAX_RECORD:
            raise BadInput(f"is larger than {MAX_RECORD} bytes", where=str(trial.trial_record))
        totals.add_record(data, parse_object(data, where=str(trial.trial_record)))
        if trial.artifacts.is_file():
            for line in json_lines(trial.artifacts):
                totals.add_artifact(line)
    return totals


def json_lines(path: Any) -> Iterator[Json]:
    """The objects of a JSONL file."""
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise BadInput(f"is no JSON: {error}", where=f"{path}:{number}") from error
            if not isinstance(value, dict):
                raise BadInput("holds no JSON object", where=f"{path}:{number}")
            yield value


def read_document(path: Any) -> Json:
    """A JSON file that a sealed run must have."""
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise BadInput("is missing; a run is sealed when all is there", where=str(path)) from error
    return parse_object(data, where=str(path))
