"""Rows and evidence to data files that a page may load from file://: classic scripts around plain JSON.

`data/trials-000.js` and `.json` hold the trials table by columns. `data/check-000.js` holds what the check in the
reader's browser needs of each trial: its event lines, its record and its place in the run tree.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from labaudit.core.merkle import ProofTree, leaf_hash
from labaudit.site.drawing.places import Places
from labaudit.site.output import SiteWriter
from labaudit.site.reading.published_run import PublishedRun
from labaudit.site.reading.trial_reading import TrialReading

Json = dict[str, Any]
ROWS_PER_SHARD = 5000
CHECK_SHARD_BYTES = 1 << 20
# A longer log is checked by the command line alone; the page says so.
LARGEST_LOG = 8 << 20
_FIXED = (
    "n", "trial_id", "href", "variant", "task", "replicate", "counts", "outcome", "seconds", "events",
    "isolation", "replay",
)  # fmt: skip


def script(name: str, value: object) -> bytes:
    """A classic script that hands JSON to whoever loaded it; `<` is escaped, so no HTML parser sees a tag in it."""
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    for raw, safe in ((b"<", b"\\u003c"), ("\u2028".encode(), b"\\u2028"), ("\u2029".encode(), b"\\u2029")):
        text = text.replace(raw, safe)
    return b'labauditData("' + name.encode("ascii") + b'",' + text + b");\n"


class TableShards:
    """Collects table rows and writes a shard of columns whenever one is full."""

    def __init__(self, writer: SiteWriter, base: str, columns: Sequence[str]) -> None:
        self._writer = writer
        self._base = base
        self._columns = list(columns)
        self._rows: list[Sequence[object]] = []
        self.count = 0

    def add(self, row: Sequence[object]) -> None:
        """One row, in the order of the columns."""
        self._rows.append(row)
        if len(self._rows) == ROWS_PER_SHARD:
            self.flush()

    def flush(self) -> None:
        """Writes what is collected."""
        if not self._rows and self.count:
            return
        values = {name: [row[place] for row in self._rows] for place, name in enumerate(self._columns)}
        shard = {"columns": self._columns, "rows": len(self._rows), "values": values}
        name = f"trials-{self.count:03d}"
        self._writer.write(f"{self._base}data/{name}.js", script(name, shard))
        self._writer.write(f"{self._base}data/{name}.json", orjson.dumps(shard, option=orjson.OPT_SORT_KEYS) + b"\n")
        self._rows = []
        self.count += 1


class CheckShards:
    """Collects the evidence of trials and writes a shard whenever one is large enough.

    Proofs are made from the records themselves, so the shards do not depend on files that no signature covers.
    """

    def __init__(self, writer: SiteWriter, base: str, run: PublishedRun, tree: ProofTree) -> None:
        self._writer = writer
        self._base = base
        self._run = run
        self._tree = tree
        self._trials: dict[str, Json] = {}
        self._size = 0
        self._count = 0

    def add(self, reading: TrialReading) -> str | None:
        """Takes a trial and returns the address part after `verify.html#`; None when its log is too long."""
        events = reading.event_bytes
        if not reading.record_bytes or events is None or len(events) > LARGEST_LOG:
            return None
        size = len(events) + len(reading.record_bytes)
        if self._trials and self._size + size > CHECK_SHARD_BYTES:
            self.flush()
        index = int(reading.row["index"])
        entry: Json = {
            "index": index,
            "record": _text(reading.record_bytes),
            "path": [node.hex() for node in self._tree.inclusion(index)] if index < self._tree.size else [],
        }
        if reading.record and reading.record.get("events") is not None:
            entry["events"] = _text(events)
        self._trials[reading.trial_id] = entry
        self._size += size
        return f"{self._base}data/check-{self._count:03d}.js:{reading.trial_id}"

    def flush(self) -> None:
        """Writes what is collected."""
        if not self._trials:
            return
        name = f"check-{self._count:03d}"
        shard = {"kind": "labaudit_check_v1", "run": self._run_part(), "trials": self._trials}
        self._writer.write(f"{self._base}data/{name}.js", script(name, shard))
        self._trials, self._size = {}, 0
        self._count += 1

    def _run_part(self) -> Json:
        run = self._run
        part: Json = {"run_id": run.run_id, "manifest": _text(run.manifest_bytes)}
        for statement in run.statements:
            if statement.kind == "run":
                part["bundle"] = _text(statement.raw)
        if run.folder.checkpoint.is_file():
            part["checkpoint"] = _text(run.folder.checkpoint.read_bytes())
        return part


def _text(data: bytes) -> str | Json:
    """Bytes as text, or as base64 when they are no UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def table_row(reading: TrialReading, places: Places, metrics: Sequence[str], seconds: float | None) -> list[object]:
    """One row of the trials table in the order of `table_columns`."""
    row, record = reading.row, reading.record or {}
    events = record.get("events")
    values = (reading.metrics or {}).get("metrics") or {}
    grades = reading.grades or {}
    fixed: list[object] = [
        row["index"] + 1,
        row["trial_id"],
        places.trial(row).href,
        row["variant_id"],
        row["task_id"],
        row["repl_idx"],
        row.get("status"),
        row.get("outcome"),
        None if seconds is None else round(seconds, 3),
        events.get("count") if isinstance(events, dict) else 0,
        *(_value(grades, name) for name in ("isolation", "replay")),
    ]
    return fixed + [_plain(values.get(name)) for name in metrics]


def primary_value(reading: TrialReading, metrics: Sequence[str]) -> bool | None:
    """Whether the first planned metric says yes, when it is one that can."""
    value = ((reading.metrics or {}).get("metrics") or {}).get(metrics[0]) if metrics else None
    return bool(value) if isinstance(value, bool) or value in (0, 1) else None


def table_columns(metrics: Sequence[str]) -> list[str]:
    """The names of the table's columns."""
    return [*_FIXED, *(f"metric:{name}" for name in metrics)]


def _value(grades: Json, name: str) -> object:
    grade = grades.get(name)
    return grade.get("value") if isinstance(grade, dict) else None


def _plain(value: object) -> object:
    return value if isinstance(value, int | float | str | bool) else None


def leaf_hashes(run: PublishedRun) -> Iterator[bytes]:
    """The leaves of the run tree in schedule order."""
    for row in run.rows:
        try:
            yield leaf_hash(run.folder.trial(row["trial_id"]).trial_record.read_bytes())
        except OSError:
            yield leaf_hash(b"")
