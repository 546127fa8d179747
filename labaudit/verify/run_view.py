"""What the checks of a run share: parsed documents, trial records and totals, each read at most when first asked for.

No check relies on another having run. A document that cannot be read is None here, and the one check that owns it says
so; the others have nothing to say about it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import orjson

from labaudit.attest.bundles import Bundle, parse_bundle
from labaudit.attest.run_reader import MAX_RECORD, Json, RunFacts, TrialTotals
from labaudit.attest.statements import PREDICATE_TYPES, SBOM_PATHS
from labaudit.core.canonical import is_canonical
from labaudit.core.digest import sha256_hex
from labaudit.core.merkle import leaf_hash
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput
from labaudit.records.schema_registry import fast_validator
from labaudit.verify.bounded_json import parse_bounded
from labaudit.verify.request import Request
from labaudit.verify.sources import CannotRead, Source
from labaudit.verify.verdict import Finding

MAX_DOCUMENT = 64 * 1024 * 1024
MAX_BUNDLE = 96 * 1024 * 1024
MAX_LINE = 1 << 20
# Twice the trials that a run can have; what is read from such a file is kept, so it must not be endless.
MAX_ROWS = 200_000


class RunView:
    """A run folder or bundle, seen through its source."""

    def __init__(self, source: Source, request: Request) -> None:
        self.source = source
        self.request = request
        self._documents: dict[str, Json | Finding] = {}
        self._bundles: dict[str, Bundle | Finding] = {}
        self.memo: dict[str, Any] = {}

    # Documents.

    def document(self, path: str) -> Json | None:
        """A run-level JSON document, or None when it cannot be read."""
        found = self._load(path)
        return found if isinstance(found, dict) else None

    def document_problem(self, path: str) -> Finding | None:
        """Why a document is None."""
        found = self._load(path)
        return found if isinstance(found, Finding) else None

    def _load(self, path: str) -> Json | Finding:
        if path not in self._documents:
            self._documents[path] = self._parse(path)
        return self._documents[path]

    def _parse(self, path: str) -> Json | Finding:
        try:
            return parse_bounded(self.source.read(path, MAX_DOCUMENT), where=path)
        except CannotRead as error:
            return error.finding
        except BadInput as error:
            return Finding("document_malformed", path, error.what)

    # The manifest.

    @cached_property
    def manifest_bytes(self) -> bytes | None:
        """The exact bytes of manifest.json."""
        try:
            return self.source.read("manifest.json", MAX_DOCUMENT)
        except CannotRead:
            return None

    @cached_property
    def manifest(self) -> Json | None:
        """The manifest, once its shape is right; None otherwise."""
        value = self.document("manifest.json")
        return value if value is not None and fast_validator("manifest_v1").is_valid(value) else None

    @cached_property
    def manifest_sha256(self) -> str | None:
        """What the attestations are about."""
        return None if self.manifest_bytes is None else sha256_hex(self.manifest_bytes)

    @cached_property
    def listed(self) -> dict[str, Json]:
        """The manifest's files by path."""
        return {} if self.manifest is None else {entry["path"]: entry for entry in self.manifest["files"]}

    @property
    def run_id(self) -> str | None:
        """The id that the manifest gives, whatever the folder is called."""
        return None if self.manifest is None else str(self.manifest["run_id"])

    # Trials.

    @cached_property
    def _schedule(self) -> list[Json] | None:
        try:
            return [row for _, row in self.lines("schedule.jsonl")]
        except (CannotRead, BadInput):
            return None

    @property
    def schedule(self) -> list[Json]:
        """The rows of schedule.jsonl; empty when it cannot be read (its own check says so)."""
        return self._schedule or []

    @property
    def schedule_is_known(self) -> bool:
        """False when schedule.jsonl cannot be read: then nothing is said about which trials there should be."""
        return self._schedule is not None

    @cached_property
    def trial_ids(self) -> list[str]:
        """The scheduled trials in order, as far as their names can be folder names."""
        names = [row.get("trial_id") for row in self.schedule]
        return [name for name in names if isinstance(name, str) and is_plain_name(name)]

    def record_bytes(self, trial_id: str) -> bytes:
        """The exact bytes of a trial record, or CannotRead."""
        return self.source.read(f"trials/{trial_id}/trial_record.json", MAX_RECORD)

    def record(self, trial_id: str) -> Json | None:
        """A trial record of the right shape, or None."""
        try:
            value = parse_object(self.record_bytes(trial_id))
        except (CannotRead, BadInput):
            return None
        return value if fast_validator("trial_record_v1").is_valid(value) else None

    def records(self) -> Iterator[tuple[str, Json]]:
        """All trial records of the right shape, in schedule order."""
        for trial_id in self.trial_ids:
            record = self.record(trial_id)
            if record is not None:
                yield trial_id, record

    def artifact_lines(self, trial_id: str | None = None) -> Iterator[Json]:
        """The well-formed lines of a trial's artifacts.jsonl, or of the run's own; a missing file has none."""
        path = artifact_list_path(trial_id)
        try:
            for _, line in self.lines(path):
                if is_artifact_line(line):
                    yield line
        except (CannotRead, BadInput):
            return

    def artifact_refs(self, trial_id: str | None) -> set[str] | None:
        """What a list of artifacts names; None when a line of it is malformed: then nothing can be called unlisted."""
        found: set[str] = set()
        try:
            for _, line in self.lines(artifact_list_path(trial_id)):
                if not is_artifact_line(line):
                    return None
                found.add(line["ref"])
        except CannotRead:
            return set()  # a trial may have no list
        except BadInput:
            return None
        return found

    @cached_property
    def leaves(self) -> list[bytes] | None:
        """The leaf hash of every trial record, whatever it holds; None when one cannot be read."""
        if not self.schedule_is_known:
            return None
        try:
            return [leaf_hash(self.record_bytes(trial_id)) for trial_id in self.trial_ids]
        except CannotRead:
            return None

    @cached_property
    def totals(self) -> TrialTotals | None:
        """One pass over all records and artifact lists; None when one of them cannot be read."""
        if not self.schedule_is_known:
            return None
        totals = TrialTotals()
        if not self._count_artifacts(totals, None):
            return None
        for trial_id in self.trial_ids:
            try:
                data = self.record_bytes(trial_id)
                value = parse_object(data)
            except (CannotRead, BadInput):
                return None
            if not fast_validator("trial_record_v1").is_valid(value):
                return None
            totals.add_record(data, value)
            if not self._count_artifacts(totals, trial_id):
                return None
        return totals

    def _count_artifacts(self, totals: TrialTotals, trial_id: str | None) -> bool:
        """False when a list is malformed, and what it covers therefore unknown; its own check says so."""
        try:
            for _, line in self.lines(artifact_list_path(trial_id)):
                if not is_artifact_line(line):
                    return False
                totals.add_artifact(line)
        except CannotRead:
            return True  # a trial may have no list
        except BadInput:
            return False
        return True

    def lines(self, path: str) -> Iterator[tuple[int, Json]]:
        """The objects of a JSONL file of our own with their line numbers; BadInput at the first line that is none.

        A line that is not canonical is none: a key twice, or other white space, would let two readers see two lines.
        """
        with self.source.open(path) as stream:
            number = 0
            while raw := stream.readline(MAX_LINE + 1):
                number += 1
                if number > MAX_ROWS:
                    raise BadInput(f"has more than {MAX_ROWS} lines", where=path)
                if not raw.endswith(b"\n"):
                    raise BadInput("the line is too long or has no end", where=f"{path}:{number}")
                try:
                    value = orjson.loads(raw)
                except orjson.JSONDecodeError as error:
                    raise BadInput(f"is no JSON: {error}", where=f"{path}:{number}") from error
                if not isinstance(value, dict):
                    raise BadInput("is no JSON object", where=f"{path}:{number}")
                if orjson.dumps(value, option=orjson.OPT_SORT_KEYS) != raw[:-1] and not is_canonical(raw[:-1]):
                    raise BadInput("is not canonical JSON", where=f"{path}:{number}")
                yield number, value

    # Attestations.

    @cached_property
    def attestation_files(self) -> list[str]:
        """The names of files directly under attestations/."""
        try:
            return [entry.name for entry in self.source.entries("attestations") if entry.kind == "file"]
        except CannotRead:
            return []

    @cached_property
    def kinds(self) -> list[str]:
        """The kinds for which a bundle file is there, in their fixed order."""
        return [kind for kind in PREDICATE_TYPES if f"{kind}.sigstore.json" in self.attestation_files]

    @cached_property
    def signed(self) -> bool:
        """True when anything but the plan's own link claims to sign the run."""
        names = self.attestation_files
        return any(not (name.startswith("resolve.") and name.endswith(".link")) for name in names)

    def bundle(self, kind: str) -> Bundle | Finding:
        """The parsed bundle of a kind, or what is wrong with it."""
        if kind not in self._bundles:
            path = f"attestations/{kind}.sigstore.json"
            try:
                self._bundles[kind] = parse_bundle(self.source.read(path, MAX_BUNDLE), where=path)
            except CannotRead as error:
                self._bundles[kind] = error.finding
            except BadInput as error:
                self._bundles[kind] = Finding("bundle_malformed", path, error.what)
        return self._bundles[kind]

    def statement(self, kind: str) -> Json | None:
        """The statement inside a bundle, or None."""
        found = self.bundle(kind)
        if isinstance(found, Finding):
            return None
        try:
            return parse_bounded(found.envelope.payload)
        except BadInput:
            return None

    @cached_property
    def run_parameters(self) -> Json | None:
        """`internalParameters` of the run statement: log key, layout key and kinds; only as good as its signature."""
        statement: Any = self.statement("run")
        try:
            parameters = statement["predicate"]["buildDefinition"]["internalParameters"]
            keys = (parameters["log_key"], parameters["layout_key"])
            if all(isinstance(key, str) for key in keys) and isinstance(parameters["statements"], list):
                return dict(parameters)
        except (TypeError, KeyError):
            pass
        return None

    # Facts.

    @cached_property
    def facts(self) -> RunFacts | None:
        """What statements are built from; None when a part cannot be read."""
        parts = {
            name: self.document(path)
            for name, path in (
                ("resolved", "resolved_experiment.json"),
                ("inclusion", "inclusion.json"),
                ("grades", "grades.json"),
                ("summary", "analysis/summary.json"),
            )
        }
        manifest, sha256, totals = self.manifest, self.manifest_sha256, self.totals
        shapes = (("resolved", "resolved_experiment_v0_3"), ("inclusion", "inclusion_v1"), ("grades", "grades_v1"))
        if manifest is None or sha256 is None or totals is None or any(part is None for part in parts.values()):
            return None
        if not all(fast_validator(schema).is_valid(parts[name]) for name, schema in shapes):
            return None
        documents = {path: self.document(path) for path in SBOM_PATHS.values() if path in self.listed}
        return RunFacts(
            manifest=manifest,
            manifest_sha256=sha256,
            started_at=totals.started_at,
            contract_files=dict(totals.contract_files),
            digests={path: entry["sha256"] for path, entry in self.listed.items()},
            documents={path: value for path, value in documents.items() if value is not None},
            **parts,  # type: ignore[arg-type]
        )


def artifact_list_path(trial_id: str | None) -> str:
    """Where the artifacts of a trial are listed; those of no trial for None."""
    return "artifacts.jsonl" if trial_id is None else f"trials/{trial_id}/artifacts.jsonl"


def is_plain_name(name: str) -> bool:
    """True for a name that is one folder level and nothing else."""
    return bool(name) and "/" not in name and "\0" not in name and name not in {".", ".."}


def is_artifact_line(line: Json) -> bool:
    """True when a line has what a covered artifact needs."""
    ref, meta, size = line.get("ref"), line.get("meta_sha256"), line.get("size")
    return (
        isinstance(ref, str)
        and ref.startswith("artifact://sha256/")
        and is_hex(ref[18:])
        and isinstance(meta, str)
        and is_hex(meta)
        and type(size) is int
    )


def is_hex(text: str) -> bool:
    """True for 64 lowercase hex digits."""
    return len(text) == 64 and not text.strip("0123456789abcdef")
