"""A sealed run folder to the values that its pages are made of, each file checked against the manifest as it is read.

A document that is absent, unreadable or not the one that was sealed is three different answers, and none stops the
build by itself: `build` decides whether such a run is published at all, and the first page says what was found.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from labaudit.core.digest import sha256_hex
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput, LabauditError
from labaudit.records.analysis_summary import AnalysisSummary
from labaudit.records.base import Record
from labaudit.records.comparisons import Comparisons
from labaudit.records.schema_registry import fast_validator
from labaudit.site.reading.analysis_files import clean_exemplars, clean_suspects
from labaudit.site.reading.signed_statements import SignedStatement, read_statements
from labaudit.store import atomic
from labaudit.store.run_folder import RunFolder

Json = dict[str, Any]
MAX_DOCUMENT = 512 << 20
_PART = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}")
GRADE_NAMES = ("isolation", "replay", "interpretability", "comparability", "provenance")
SOURCES = ("framework_events", "hooks", "traces", "sdk", "network_proxy", "imported")


@dataclass
class PublishedRun:
    """What is known of one run before its trials are read."""

    folder: RunFolder
    run_id: str
    manifest: Json
    manifest_bytes: bytes
    listed: dict[str, Json]
    resolved: Json
    rows: list[Json]
    totals: Json
    grades: Json | None
    summary: Json | None
    comparisons: Json | None
    exemplars: Json | None
    suspects: Json | None
    attestation: Json | None
    import_report: Json | None
    lineage: Json | None
    divergence: Json | None
    statements: list[SignedStatement]
    problems: list[str] = field(default_factory=list)

    @property
    def manifest_sha256(self) -> str:
        """The digest that every statement is about."""
        return sha256_hex(self.manifest_bytes)

    @property
    def baseline(self) -> str:
        """The id of the arm that the others are compared with."""
        return str(self.resolved.get("baseline", {}).get("id", ""))

    @property
    def variants(self) -> list[str]:
        """All arms in the order of the plan, baseline first; arms that only the rows know come last."""
        named = [str(item["id"]) for item in self.resolved.get("variants", []) if isinstance(item, dict)]
        return list(dict.fromkeys([*named, *(row["variant_id"] for row in self.rows)]))

    @property
    def title(self) -> str:
        """What the experiment is called."""
        named = self.resolved.get("experiment", {})
        return str(named.get("name") or named.get("id") or self.run_id)

    def metric_evidence(self, name: object) -> str:
        """Who saw a metric's values: evaluators are run by the framework; what a harness says of itself nobody saw."""
        for item in self.resolved.get("metrics") or []:
            if isinstance(item, dict) and item.get("name") == name:
                return evidence_of_metric(str(item.get("source")))
        return "imported" if self.import_report is not None else "none"

    def planned_comparisons(self) -> list[Json]:
        """The comparisons of the analysis, or none."""
        found = (self.comparisons or {}).get("comparisons", [])
        return [item for item in found if isinstance(item, dict)]

    def pairs(self) -> dict[tuple[str, int], list[Json]]:
        """The rows that belong to one task and replicate, one per arm."""
        found: dict[tuple[str, int], list[Json]] = defaultdict(list)
        for row in self.rows:
            found[row["task_id"], row["repl_idx"]].append(row)
        return found


def evidence_of_metric(source: str) -> str:
    """The badge of a metric's source."""
    if source == "imported":
        return "imported"
    return "framework_events" if source == "framework" or source.startswith("evaluator:") else "none"


Shape = Callable[[object], bool]


def by_schema(name: str) -> Shape:
    """A document that keeps to a schema."""
    return fast_validator(name).is_valid


def by_record(record: type[Record]) -> Shape:
    """A document that a record can be made of."""

    def fits(value: object) -> bool:
        try:
            record.from_json(value)
        except BadInput:
            return False
        return True

    return fits


class _Reader:
    """Reads run-level files and notes what is wrong with them."""

    def __init__(self, run: RunFolder, listed: dict[str, Json]) -> None:
        self._run = run
        self._listed = listed
        self.problems: list[str] = []

    def document(self, path: Path, shape: Shape | None = None) -> Json | None:
        """The JSON object in a file; None when it is absent, unreadable or of another shape than its kind has."""
        name = path.relative_to(self._run.path).as_posix()
        entry = self._listed.get(name)
        if not path.is_file():
            if entry is not None:
                self.problems.append(f"{name} is listed in the manifest and missing from the folder")
            return None
        try:
            data = atomic.read_bytes(path, max_bytes=MAX_DOCUMENT)
            if entry is None:
                self.problems.append(f"{name} is not listed in the manifest")
            elif sha256_hex(data) != entry["sha256"]:
                self.problems.append(f"{name} is not the file that was sealed: its digest differs from the manifest's")
            value: Json = parse_object(data, where=name)
            if shape is not None and not shape(value):
                self.problems.append(f"{name} does not have the shape that such a file has")
                return None
            return value
        except LabauditError as error:
            self.problems.append(f"{name} cannot be read: {error.what}")
            return None


def read_run(path: Path) -> PublishedRun:
    """The run in a folder; a folder without a readable manifest, plan or table of trials is no run to publish."""
    run = RunFolder(path)
    if not run.manifest.is_file():
        raise BadInput("is no sealed run", where=str(path), hint="finish it: labaudit resume RUN")
    data = atomic.read_bytes(run.manifest, max_bytes=MAX_DOCUMENT)
    manifest: Json = parse_object(data, where=str(run.manifest))
    if not by_schema("manifest_v1")(manifest):
        raise BadInput("is no manifest", where=str(run.manifest), hint="labaudit verify says why")
    if not safe_path_part(manifest["run_id"]):
        raise BadInput("names a run that can have no address", where=str(run.manifest))
    listed = {str(item["path"]): item for item in manifest.get("files", []) if isinstance(item, dict)}
    reader = _Reader(run, listed)
    resolved = reader.document(run.resolved, by_schema("resolved_experiment_v0_3"))
    inclusion = reader.document(run.inclusion, by_schema("inclusion_v1"))
    if resolved is None or inclusion is None:
        raise BadInput("has no readable plan or table of trials", where=str(path), hint="labaudit verify says why")
    rows = _rows(inclusion, where=str(run.inclusion))
    statements, problems = read_statements(run)
    return PublishedRun(
        folder=run,
        run_id=manifest["run_id"],
        manifest=manifest,
        manifest_bytes=data,
        listed=listed,
        resolved=resolved,
        rows=rows,
        totals=_count(rows),
        grades=reader.document(run.grades, by_schema("grades_v1")),
        summary=reader.document(run.summary, by_record(AnalysisSummary)),
        comparisons=reader.document(run.comparisons, by_record(Comparisons)),
        exemplars=clean_exemplars(reader.document(run.exemplars), reader.problems),
        suspects=clean_suspects(reader.document(run.suspects), reader.problems),
        attestation=reader.document(run.attestation, by_schema("attestation_v1")),
        import_report=reader.document(run.import_report),
        lineage=reader.document(run.lineage),
        divergence=reader.document(run.divergence),
        statements=statements,
        problems=reader.problems + problems,
    )


def _rows(inclusion: Json, *, where: str) -> list[Json]:
    """The rows, each naming a trial that can have a page."""
    rows: list[Json] = inclusion["rows"]
    seen: set[str] = set()
    for number, row in enumerate(rows):
        trial_id = row["trial_id"]
        if not safe_path_part(trial_id) or trial_id in seen:
            raise BadInput("a row names no trial, or one twice", where=f"{where} row {number}")
        seen.add(trial_id)
    return rows


def safe_path_part(name: str) -> bool:
    """True for a name that can stand in a path and in an address as it is."""
    return _PART.fullmatch(name) is not None


def _count(rows: list[Json]) -> Json:
    """Totals are counted from rows, never taken from a status field."""
    totals: Json = {"scheduled": len(rows), "included": 0, "excluded": 0, "lost": 0}
    outcomes: dict[str, int] = {"success": 0, "failure": 0, "error": 0, "missing": 0, "none": 0}
    for row in rows:
        status = str(row.get("status"))
        totals[status] = totals.get(status, 0) + 1
        outcome = row.get("outcome") or "none"
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return {**totals, "outcomes": outcomes, "retried": sum(1 for row in rows if (row.get("attempts") or 0) > 1)}


def lines_of(data: bytes) -> Iterator[Json]:
    """The objects of JSONL bytes; a line that is no object is given as `{"unreadable": true}`."""
    for line in data.split(b"\n"):
        if not line:
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            value = None
        yield value if isinstance(value, dict) else {"unreadable": True}
