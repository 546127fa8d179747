"""A run folder to one row per scheduled trial: what it measured, how it ended, how often it was tried.

Needs no numeric library, so that a verifier can rebuild the rows and their digests. Values come from `metrics.json`;
where that is missing, from the harness's own `trial_output.json`, and the row says so. Rows come in schedule order
whatever the order of folders on disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from labaudit.analysis.trials.canonical_text import scalar_text, text
from labaudit.core.digest import sha256_hex
from labaudit.core.strict_json import parse_json, parse_object
from labaudit.errors import BadInput
from labaudit.store.atomic import read_bytes
from labaudit.store.run_folder import RunFolder, TrialFolder

Status = Literal["included", "excluded", "lost"]
ValuesFrom = Literal["metrics.json", "trial_output.json", "none"]
_NO_METRICS: Mapping[str, object] = {}
_NO_CAUSES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One scheduled trial."""

    index: int
    trial_id: str
    variant_id: str
    task_id: str
    repl_idx: int
    status: Status
    rule: str = ""
    outcome: str | None = None
    attempts: int = 1
    started_at: str | None = None
    ended_at: str | None = None
    evidence_origin: str | None = None
    worker: str | None = None
    image_digest: str | None = None
    values_from: ValuesFrom = "none"
    metrics: Mapping[str, object] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    self_reported: tuple[str, ...] = ()
    record_sha256: str | None = None
    problem: str | None = None

    def canonical(self) -> str:
        """The row as canonical JSON; its keys are written in order by hand because there may be 100,000 rows."""
        metrics = ",".join(f"{text(name)}:{scalar_text(self.metrics[name])}" for name in _sorted(self.metrics))
        missing = ",".join(f"{text(name)}:{text(self.missing[name])}" for name in _sorted(self.missing))
        reported = ",".join(text(name) for name in self.self_reported)
        return (
            f'{{"attempts":{self.attempts},"ended_at":{text(self.ended_at)},'
            f'"evidence_origin":{text(self.evidence_origin)},"image_digest":{text(self.image_digest)},'
            f'"index":{self.index},"metrics":{{{metrics}}},"missing":{{{missing}}},'
            f'"outcome":{text(self.outcome)},"problem":{text(self.problem)},'
            f'"record_sha256":{text(self.record_sha256)},"repl_idx":{self.repl_idx},"rule":{text(self.rule)},'
            f'"self_reported":[{reported}],"started_at":{text(self.started_at)},"status":{text(self.status)},'
            f'"task_id":{text(self.task_id)},"trial_id":{text(self.trial_id)},'
            f'"values_from":{text(self.values_from)},"variant_id":{text(self.variant_id)},'
            f'"worker":{text(self.worker)}}}'
        )

    def sha256(self) -> str:
        """The digest that stands beside the row in `trials.parquet`."""
        return sha256_hex(self.canonical().encode())


def read_rows(run: RunFolder, *, processes: int = 1) -> list[TrialRow]:
    """All rows of a run, in schedule order."""
    scheduled = list(_scheduled(run))
    if not scheduled:
        raise BadInput(
            "the run has no scheduled trial to analyse",
            where=str(run.path),
            hint=f"a run folder holds {run.inclusion.name} or {run.schedule.name}",
        )
    if processes <= 1 or len(scheduled) < 256:
        return list(_filled(str(run.trials), scheduled))
    from concurrent.futures import ProcessPoolExecutor

    # Chunks keep their order, so the number of processes cannot show in any output.
    size = -(-len(scheduled) // processes)
    chunks = [scheduled[start : start + size] for start in range(0, len(scheduled), size)]
    with ProcessPoolExecutor(processes) as pool:
        parts = pool.map(_filled_list, [str(run.trials)] * len(chunks), chunks)
        return [row for part in parts for row in part]


def rows_digest(rows: Iterable[TrialRow]) -> str:
    """One digest over all row digests, in order."""
    return sha256_hex("".join(f"{row.sha256()}\n" for row in rows).encode())


def _scheduled(run: RunFolder) -> Iterator[TrialRow]:
    """Rows without values yet: from inclusion.json, else the schedule, else the folders themselves."""
    if run.inclusion.is_file():
        document = parse_object(read_bytes(run.inclusion), where=str(run.inclusion))
        listed = document.get("rows")
        if not isinstance(listed, list):
            raise BadInput("has no rows", where=str(run.inclusion))
        entries = [_row(entry, str(run.inclusion)) for entry in listed]
    elif run.schedule.is_file():
        lines = read_bytes(run.schedule).splitlines()
        entries = [_row(parse_json(line, where=str(run.schedule)), str(run.schedule)) for line in lines if line]
    else:
        entries = [_row_of_folder(folder) for folder in run.trial_folders()]
    yield from sorted(entries, key=lambda row: (row.index, row.trial_id))


def _row(entry: object, where: str) -> TrialRow:
    if not isinstance(entry, dict):
        raise BadInput("a row is no JSON object", where=where)
    try:
        return TrialRow(
            index=_whole(entry["index"]),
            trial_id=_folder_name(entry["trial_id"]),
            variant_id=_name(entry["variant_id"]),
            task_id=_name(entry["task_id"]),
            repl_idx=_whole(entry["repl_idx"]),
            status=_status(entry.get("status", "included")),
            rule=str(entry.get("rule", "")),
            outcome=_text_or_none(entry.get("outcome")),
            attempts=_whole(entry.get("attempts", 1)),
        )
    except (KeyError, TypeError) as error:
        raise BadInput(f"a row lacks or misuses {error}", where=where) from error


def _row_of_folder(folder: TrialFolder) -> TrialRow:
    record = parse_object(read_bytes(folder.trial_record), where=str(folder.trial_record))
    ids = record.get("ids")
    if not isinstance(ids, dict):
        raise BadInput("has no ids", where=str(folder.trial_record))
    status = "lost" if record.get("status") == "lost" else "included"
    return _row({**ids, "index": record.get("index", 0), "status": status}, str(folder.trial_record))


def _filled_list(trials: str, rows: list[TrialRow]) -> list[TrialRow]:
    return list(_filled(trials, rows))


def _filled(trials: str, rows: Iterable[TrialRow]) -> Iterator[TrialRow]:
    names = TrialFolder(Path())
    for row in rows:
        folder = f"{trials}/{row.trial_id}"
        placed = _with_record(row, folder, names)
        data = _read(f"{folder}/{names.metrics.name}") if placed.status != "lost" else None
        if data is None:
            yield _with_fallback(placed, folder, names)
        else:
            yield _with_metrics(placed, parse_object(data, where=f"{folder}/{names.metrics.name}"), folder)


def _with_record(row: TrialRow, folder: str, names: TrialFolder) -> TrialRow:
    """What the trial's record says: times, origin, attempts; its digest ties the row to the run tree."""
    raw = _read(f"{folder}/{names.trial_record.name}")
    if raw is None:
        # Only a schedule says nothing of the trial's fate: without a record it has not run, or not to its end.
        return row if row.rule else replace(row, status="lost", rule="no_record")
    record = parse_object(raw, where=f"{folder}/{names.trial_record.name}")
    origin, attempts = _text_or_none(record.get("evidence_origin")), record.get("attempts")
    return replace(
        row,
        status="lost" if not row.rule and record.get("status") == "lost" else row.status,
        outcome=row.outcome or _text_or_none(record.get("outcome")),
        attempts=max(row.attempts, attempts if isinstance(attempts, int) else 0),
        started_at=_text_or_none(record.get("started_at")),
        ended_at=_text_or_none(record.get("ended_at")),
        evidence_origin=origin,
        worker=_worker(folder, names) if origin == "worker" else None,
        image_digest=_text_or_none(record.get("image_digest")),
        record_sha256=sha256_hex(raw),
    )


def _with_metrics(row: TrialRow, document: dict[str, object], folder: str) -> TrialRow:
    metrics, missing, reported = (document.get(key) for key in ("metrics", "missing", "self_reported"))
    if not isinstance(metrics, dict):
        raise BadInput("metrics.json has no metrics", where=folder)
    return replace(
        row,
        outcome=_text_or_none(document.get("outcome")) or row.outcome,
        values_from="metrics.json",
        metrics=metrics,
        missing=_causes(missing) if isinstance(missing, dict) and missing else _NO_CAUSES,
        self_reported=tuple(sorted(map(str, reported))) if isinstance(reported, list) else (),
    )


def _with_fallback(row: TrialRow, folder: str, names: TrialFolder) -> TrialRow:
    """Values from the harness's own output: all self-reported, none from a trial that ended in error or missing."""
    data = _read(f"{folder}/{names.trial_output.name}") if row.status != "lost" else None
    if data is None:
        return row
    try:
        document = parse_object(data, where=names.trial_output.name)
    except BadInput as error:
        return replace(row, values_from="trial_output.json", problem=error.what)
    given, outcome = document.get("metrics"), _text_or_none(document.get("outcome")) or row.outcome
    metrics = given if isinstance(given, dict) else _NO_METRICS
    return replace(
        row,
        outcome=outcome,
        values_from="trial_output.json",
        metrics=metrics,
        missing=dict.fromkeys(metrics, outcome) if outcome in ("missing", "error") else _NO_CAUSES,
        self_reported=tuple(sorted(metrics)),
    )


def _worker(folder: str, names: TrialFolder) -> str | None:
    data = _read(f"{folder}/{names.receipt.name}")
    return _text_or_none(parse_object(data, where=f"{folder}/{names.receipt.name}").get("worker_id")) if data else None


def _read(path: str) -> bytes | None:
    """A regular file's bytes, None when it is not there; plain calls, because this happens 200,000 times."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=path) from error
    try:
        size = os.fstat(descriptor).st_size
        data = os.read(descriptor, size + 1)
        while len(data) < size:
            more = os.read(descriptor, size - len(data))
            if not more:
                break
            data += more
        return data
    finally:
        os.close(descriptor)


def _sorted(names: Iterable[str]) -> list[str]:
    # RFC 8785 sorts by UTF-16 units, not by code points.
    return sorted(names, key=lambda name: name.encode("utf-16-be"))


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"a number ({value!r})")
    return value


def _status(value: object) -> Status:
    if value == "included" or value == "excluded" or value == "lost":
        return value
    raise TypeError(f"a status ({value!r}); known: included, excluded, lost")


def _causes(given: Mapping[str, object]) -> dict[str, str]:
    return {name: cause if isinstance(cause, str) else "invalid" for name, cause in given.items()}


def _name(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"a name ({value!r})")
    return value


def _folder_name(value: object) -> str:
    name = _name(value)
    if "/" in name or "\0" in name or name in {".", ".."}:
        raise TypeError(f"a trial id that could be a folder's name ({name!r})")
    return name
