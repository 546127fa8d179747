"""A table of results (CSV, JSON Lines, JSON or Parquet) to foreign rows, by a mapping of fields to columns.

    task=question_id  variant=model  replicate=run  success=correct  duration_s=seconds  started_at=begin

`task` and at least one metric are needed; columns of those names are found by themselves, and so is a metric called
success, resolved, correct, passed or score. Any field that is none of the names below is a metric; `name:binary`,
`name:continuous` and `name:lower` say what kind. An empty cell is a missing value, never a zero.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labaudit.errors import BadInput
from labaudit.importers.foreign_json import (
    id_text,
    mapping,
    metric_value,
    not_objects,
    read_foreign_json,
    rows,
    text_of,
)
from labaudit.importers.moments import seconds_between
from labaudit.importers.protocol import ReadOptions
from labaudit.importers.results import (
    Cause,
    ForeignResults,
    ForeignTrial,
    MetricDeclaration,
    Outcome,
    Tool,
    Value,
    VariantInfo,
)
from labaudit.importers.source_files import SourceFiles

FIELDS = ("variant", "task", "replicate", "id", "started_at", "ended_at", "error")
# Columns that are taken as metrics when no mapping names one.
USUAL = ("success", "resolved", "correct", "passed", "score")
_TRUE = {"true", "yes", "pass", "passed", "success", "correct"}
_FALSE = {"false", "no", "fail", "failed", "failure", "incorrect"}
_EMPTY = {"", "na", "n/a", "null", "none"}
MAX_CELLS = 20_000_000
MAX_UNFOLDED = 1 << 30
Row = dict[str, Any]


@dataclass(frozen=True)
class TableMapping:
    """Which column holds what."""

    fields: dict[str, str]
    metrics: dict[str, str]
    declared: tuple[MetricDeclaration, ...]

    @classmethod
    def parse(cls, given: dict[str, str], columns: Sequence[str]) -> TableMapping:
        """The mapping, with the columns `task`, `variant` and so on as defaults; BadInput names what is wrong."""
        fields = {name: name for name in FIELDS if name in columns}
        metrics: dict[str, str] = {}
        declared = []
        for key, column in given.items():
            name, *kinds = key.split(":")
            if column not in columns:
                hint = "columns: " + ", ".join(str(known)[:40] for known in columns[:20])
                raise BadInput(f"there is no column {column!r}", where=f"--map {key}={column}", hint=hint)
            if name in FIELDS:
                fields[name] = column
                continue
            metrics[name] = column
            kind = "continuous" if "continuous" in kinds else "binary" if "binary" in kinds else None
            declared.append((name, kind, "lower" if "lower" in kinds else "higher"))
        if "task" not in fields:
            raise BadInput("no column holds the task", hint="say --map task=COLUMN")
        if not metrics:
            metrics = {name: name for name in USUAL if name in columns}
            declared = [(name, None, "higher") for name in metrics]
        if not metrics:
            raise BadInput("no column holds a metric", hint="say --map success=COLUMN")
        types = tuple(MetricDeclaration(name, kind or "binary", way) for name, kind, way in declared)  # type: ignore[arg-type]
        return cls(fields, metrics, types)


def read_table(paths: Sequence[Path], files: SourceFiles, options: ReadOptions) -> ForeignResults:
    """All rows of all files; each file is a variant of its own unless a column names the variant."""
    results = ForeignResults("table", None, Tool("unknown"), [], title="Table")
    explicit = {key for key in options.mapping if ":binary" in key or ":continuous" in key}
    for path in paths:
        name = files.label(path)
        table = list(_rows(path, name, files))
        if not table:
            results.note("empty_file", "caution", f"{name} has no rows.", where=name)
            continue
        columns = list(dict.fromkeys(key for row in table for key in row))
        chosen = TableMapping.parse(options.mapping, columns)
        if not results.metrics:
            results.metrics = list(chosen.declared)
        _add(table, name, chosen, options, results)
    if not results.trials:
        raise BadInput("there are no rows to import", where=", ".join(str(path) for path in paths))
    results.metrics = [_typed(metric, results, explicit) for metric in results.metrics]
    results.note("tool_unknown", "caution", "A table does not say which tool made it, nor in which version.")
    return results


def _rows(path: Path, name: str, files: SourceFiles) -> Iterator[Row]:
    data = files.bytes(path, name)
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        yield from _parquet_rows(data, name)
    elif suffix in (".jsonl", ".ndjson"):
        for number, line in enumerate(data.split(b"\n"), start=1):
            if line.strip():
                row = read_foreign_json(line, f"{name}:{number}")
                if not isinstance(row, dict):
                    raise BadInput("is no JSON object", where=f"{name}:{number}")
                yield row
    elif suffix == ".json":
        document = read_foreign_json(data, name)
        given = document if isinstance(document, list) else mapping(document).get("rows")
        if not_objects(given):
            raise BadInput(f"{not_objects(given)} of its rows are no JSON objects", where=name)
        yield from rows(given)
    else:
        yield from _csv_rows(data, name)


def _csv_rows(data: bytes, name: str) -> Iterator[Row]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"is not UTF-8 at byte {error.start}", where=name) from error
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        header = reader.fieldnames or []
        if len(set(header)) != len(header):
            raise BadInput("has a column name twice", where=f"{name}:1")
        for row in reader:
            if None in row or None in row.values():
                raise BadInput("a row has more or fewer cells than the header", where=f"{name}:{reader.line_num}")
            yield row
    except csv.Error as error:
        raise BadInput(f"is no CSV: {error}", where=name) from error


def _parquet_rows(data: bytes, name: str) -> Iterator[Row]:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as parquet  # type: ignore[import-untyped]

    try:
        stored = parquet.ParquetFile(io.BytesIO(data))
        cells = stored.metadata.num_rows * max(1, stored.metadata.num_columns)
        if cells > MAX_CELLS:
            # Repeated values fold into almost nothing, so a file's size says little about its rows.
            raise BadInput(f"holds {cells} cells, more than the {MAX_CELLS} allowed", where=name)
        unfolded = 0
        for batch in stored.iter_batches(batch_size=1024):
            unfolded += batch.nbytes
            if unfolded > MAX_UNFOLDED:
                raise BadInput(f"unfolds past {MAX_UNFOLDED} bytes", where=name)
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadInput(f"is no Parquet file that can be read: {error}"[:300], where=name) from error


def _add(table: list[Row], name: str, chosen: TableMapping, options: ReadOptions, results: ForeignResults) -> None:
    fields = chosen.fields
    nameless = 0
    for number, row in enumerate(table):
        task_id = id_text(row.get(fields["task"]))
        label = id_text(row.get(fields["variant"])) if "variant" in fields else Path(name).stem
        if task_id is None or label is None:
            nameless += 1
            continue
        if options.wants(label):
            results.variants.setdefault(label, VariantInfo(label))
            results.tasks.setdefault(task_id, {})
            results.trials.append(_trial(row, number, name, label, task_id, chosen))
    if nameless:
        said = f"{nameless} row(s) of {name} name no task or no variant; they are left out."
        results.note("row_without_name", "mismatch", said, where=name, count=nameless)


def _trial(row: Row, number: int, name: str, label: str, task_id: str, chosen: TableMapping) -> ForeignTrial:
    fields = chosen.fields
    metrics: dict[str, Value] = {}
    missing: dict[str, Cause] = {}
    for metric, column in chosen.metrics.items():
        value, cause = cell_value(row.get(column))
        if value is not None:
            metrics[metric] = value
        else:
            missing[metric] = cause or "invalid"
    replicate = id_text(row.get(fields["replicate"])) if "replicate" in fields else None
    own = id_text(row.get(fields["id"])) if "id" in fields else None
    error = text_of(row.get(fields["error"])) if "error" in fields else None
    started, ended = (
        text_of(_as_text(row.get(fields[key]))) if key in fields else None for key in ("started_at", "ended_at")
    )
    # A column called success says how a row ended; without one the first column has to.
    primary = metrics.get("success" if "success" in chosen.metrics else next(iter(chosen.metrics)))
    outcome: Outcome = (
        ("error" if error else "missing") if primary is None else "success" if primary == 1 else "failure"
    )
    return ForeignTrial(
        variant=label,
        task_id=task_id,
        original_id=own or (f"{label}/{task_id}/{replicate}" if replicate is not None else f"{name}:{number + 1}"),
        order=(replicate or "", number),
        outcome=outcome,
        metrics=metrics,
        missing=missing,
        started_at=started,
        ended_at=ended,
        seconds=seconds_between(started, ended),
        error=(error or "the row has no value")[:2000] if outcome in ("error", "missing") else None,
        sources=(name,),
        facts={"row": number + 1},
    )


def cell_value(cell: object) -> tuple[Value | None, Cause | None]:
    """A cell as a number or a boolean (1 and 0), or the cause of its absence."""
    if not isinstance(cell, str):
        value, cause = metric_value(cell)
        return (int(value), None) if isinstance(value, bool) else (value, cause)
    text = cell.strip().lower()
    if text in _EMPTY:
        return None, "missing"
    if text in _TRUE or text in _FALSE:
        return int(text in _TRUE), None
    try:
        number = float(text)
    except ValueError:
        return None, "invalid"
    if math.isnan(number):
        return None, "nan"
    if not abs(number) < 2**53:
        return None, "invalid"
    return (int(number) if number.is_integer() else number), None


def _as_text(value: object) -> str | None:
    return value if isinstance(value, str) or value is None else str(value)


def _typed(metric: MetricDeclaration, results: ForeignResults, explicit: set[str]) -> MetricDeclaration:
    """Binary unless a value is neither 0 nor 1; what the caller said stays, and a value against it is a finding."""
    values = [trial.metrics[metric.name] for trial in results.trials if metric.name in trial.metrics]
    odd = sum(1 for value in values if value not in (0, 1))
    if any(key.split(":")[0] == metric.name for key in explicit):
        if metric.type == "binary" and odd:
            said = f"{odd} value(s) of the binary metric {metric.name} are neither 0 nor 1."
            results.note("value_not_binary", "mismatch", said, count=odd)
        return metric
    return MetricDeclaration(metric.name, "continuous" if odd else "binary", metric.direction)
