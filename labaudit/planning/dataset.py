"""A dataset file (jsonl, json or csv) to its tasks, each with an id, and the digest of the exact bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from labaudit.core.digest import sha256_hex
from labaudit.core.strict_json import parse_json
from labaudit.errors import BadInput
from labaudit.store.atomic import read_bytes

FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv"}


@dataclass(frozen=True)
class Dataset:
    """The tasks that a run uses, and the bytes they came from."""

    name: str
    format: str
    data: bytes
    tasks: tuple[dict[str, object], ...]
    ids: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """Hash of the whole file, whatever `limit` says."""
        return sha256_hex(self.data)


def load_dataset(
    path: Path, *, id_field: str = "id", limit: int | None = None, file_format: str | None = None
) -> Dataset:
    """The tasks of the file at `path`; BadInput names the line of a task that cannot be used."""
    file_format = file_format or FORMATS.get(path.suffix.lower())
    if file_format is None:
        raise BadInput(f"unknown dataset format {path.suffix!r}", where=str(path), hint="use .jsonl, .json or .csv")
    return read_dataset(read_bytes(path), file_format, name=path.name, where=str(path), id_field=id_field, limit=limit)


def read_dataset(
    data: bytes, file_format: str, *, name: str, where: str, id_field: str = "id", limit: int | None = None
) -> Dataset:
    """The same from bytes that are already here (a stored artifact)."""
    readers = {"jsonl": _jsonl, "json": _json, "csv": _csv}
    tasks: list[dict[str, object]] = []
    ids: dict[str, str] = {}
    for place, task in readers[file_format](data, where):
        if limit is not None and len(tasks) >= limit:
            break
        task_id = _task_id(task, id_field, place)
        if task_id in ids:
            raise BadInput(f"task id {task_id!r} stands twice, first at {ids[task_id]}", where=place)
        ids[task_id] = place
        tasks.append(task)
    if not tasks:
        raise BadInput("the dataset has no task", where=where, hint="an experiment needs at least one")
    return Dataset(name, file_format, data, tuple(tasks), tuple(ids))


def _task_id(task: dict[str, object], id_field: str, place: str) -> str:
    value = task.get(id_field)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value:
        raise BadInput(
            f"the task has no {id_field!r}",
            where=place,
            hint="give each task an id, or name another field in dataset.id_field",
        )
    return value


def _jsonl(data: bytes, where: str) -> Iterator[tuple[str, dict[str, object]]]:
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            yield _object(parse_json(line, where=f"{where}:{number}"), f"{where}:{number}")


def _json(data: bytes, where: str) -> Iterator[tuple[str, dict[str, object]]]:
    value = parse_json(data, where=where)
    if isinstance(value, dict) and isinstance(value.get("tasks"), list):
        value = value["tasks"]
    if not isinstance(value, list):
        raise BadInput("should hold an array of tasks", where=where)
    for index, item in enumerate(value):
        yield _object(item, f"{where}[{index}]")


def _csv(data: bytes, where: str) -> Iterator[tuple[str, dict[str, object]]]:
    try:
        # Spreadsheets put a byte order mark before the first column's name; it is no part of the name.
        reader = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        names = reader.fieldnames or []
        if len(set(names)) != len(names):
            raise BadInput("a column name stands twice", where=f"{where}:1")
        for row in reader:
            place = f"{where}:{reader.line_num}"
            if None in row or None in row.values():
                raise BadInput(f"the row has not the {len(names)} columns of the header", where=place)
            yield place, dict(row)
    except UnicodeDecodeError as error:
        raise BadInput(f"is not UTF-8 at byte {error.start}", where=where) from error
    except csv.Error as error:
        raise BadInput(f"is no CSV: {error}", where=where) from error


def _object(value: object, place: str) -> tuple[str, dict[str, object]]:
    if not isinstance(value, dict):
        raise BadInput("a task must be a JSON object", where=place)
    return place, value
