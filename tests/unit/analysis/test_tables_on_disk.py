"""Trial rows and `trials.parquet`: one row per scheduled trial, digests that tie it to its record, and back again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from labaudit.analysis import analyse_run
from labaudit.analysis.trials.parquet import read_trials_parquet
from labaudit.analysis.trials.rows import read_rows, rows_digest
from labaudit.analysis.trials.table import table_of_rows
from labaudit.core.canonical import canonical_bytes
from labaudit.core.digest import sha256_hex
from labaudit.errors import BadInput
from tests.unit.analysis.made_up import COST, SUCCESS, Trial, binary_pairs, write_run

TYPES = {"success": "binary", "cost": "continuous"}


def trials() -> list[Trial]:
    return [
        Trial("base", "é/ü", 0, metrics={"success": 1, "cost": 0.1, "note": "fine"}),
        Trial("drop", "é/ü", 0, metrics={"success": 0}, missing={"cost": "nan"}, attempts=2),
        Trial("base", "t2", 1, status="lost"),
        Trial("drop", "t2", 1, metrics={"success": "yes", "cost": 1e21}, status="included"),
    ]


class Flat(Trial):
    @property
    def trial_id(self) -> str:
        return super().trial_id.replace("/", "_")


def flat() -> list[Trial]:
    return [Flat(**vars(trial)) for trial in trials()]


def test_a_stored_table_reads_back_as_it_was(tmp_path: Path) -> None:
    run = write_run(tmp_path, flat(), metrics=(SUCCESS, COST), secondary=["cost"])
    analyse_run(run)
    direct, stored = table_of_rows(read_rows(run), TYPES), read_trials_parquet(run.trials_table)
    for name in ("index", "variant", "task", "repl", "status", "attempts"):
        assert np.array_equal(getattr(direct, name), getattr(stored, name))
    assert (direct.variants, direct.tasks, list(direct.trial_ids)) == (
        stored.variants, stored.tasks, list(stored.trial_ids),
    )  # fmt: skip
    for name, column in direct.metrics.items():
        assert np.array_equal(column.values, stored.metrics[name].values, equal_nan=True)
        assert np.array_equal(column.causes, stored.metrics[name].causes)
    assert list(read_trials_parquet(run.trials_table, ["cost"]).metrics) == ["cost"]


def test_each_row_carries_the_digest_of_its_record_and_of_itself(tmp_path: Path) -> None:
    run = write_run(tmp_path, flat(), metrics=(SUCCESS, COST))
    summary = analyse_run(run).summary
    table = pq.read_table(run.trials_table).to_pylist()
    rows = read_rows(run)
    for row, stored in zip(rows, table, strict=True):
        assert stored["record_sha256"] == sha256_hex(run.trial(row.trial_id).trial_record.read_bytes())
        assert stored["row_sha256"] == sha256_hex(row.canonical().encode())
        assert canonical_bytes(json.loads(row.canonical())) == row.canonical().encode()
    assert summary.trials_table.rows_sha256 == rows_digest(rows)


def test_the_schema_metadata_names_no_library_state(tmp_path: Path) -> None:
    run = write_run(tmp_path, flat(), metrics=(SUCCESS, COST))
    analyse_run(run)
    assert pq.read_schema(run.trials_table).metadata is None


def test_rows_come_in_schedule_order_without_an_inclusion_table_too(tmp_path: Path) -> None:
    run = write_run(tmp_path, flat(), metrics=(SUCCESS, COST))
    expected = [row.trial_id for row in read_rows(run)]
    run.inclusion.unlink()
    found = read_rows(run)
    assert [row.trial_id for row in found] == expected
    assert [row.status for row in found] == ["included", "included", "lost", "included"]


@pytest.mark.parametrize("trial_id", ["../x", "a/b", "..", ""])
def test_a_trial_id_that_leaves_the_folder_is_refused(tmp_path: Path, trial_id: str) -> None:
    run = write_run(tmp_path, binary_pairs([1], [0]))
    document = json.loads(run.inclusion.read_bytes())
    document["rows"][0]["trial_id"] = trial_id
    run.inclusion.write_text(json.dumps(document))
    with pytest.raises(BadInput):
        read_rows(run)


def test_a_link_in_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", binary_pairs([1], [0]))
    metrics = run.trial("base.t0000.r0").metrics
    (tmp_path / "elsewhere.json").write_bytes(metrics.read_bytes())
    metrics.unlink()
    metrics.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(BadInput, match="cannot be read"):
        read_rows(run)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"{}"])
def test_something_that_is_no_parquet_is_named(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "trials.parquet").write_bytes(data)
    with pytest.raises(BadInput, match="no readable Parquet"):
        read_trials_parquet(tmp_path / "trials.parquet")


def test_with_a_schedule_alone_a_trial_without_a_record_counts_as_lost(tmp_path: Path) -> None:
    run = write_run(tmp_path, binary_pairs([1, 0], [0, 1]))
    rows = json.loads(run.inclusion.read_bytes())["rows"]
    names = ("index", "trial_id", "variant_id", "task_id", "repl_idx")
    run.schedule.write_bytes(b"".join(canonical_bytes({key: row[key] for key in names}) + b"\n" for row in rows))
    run.inclusion.unlink()
    run.trial("drop.t0001.r0").trial_record.unlink()
    found = {row.trial_id: (row.status, row.rule) for row in read_rows(run)}
    assert found["drop.t0001.r0"] == ("lost", "no_record")
    assert found["base.t0001.r0"] == ("included", "")
    assert analyse_run(run).summary.totals.lost == 1


def test_an_unknown_status_is_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path, binary_pairs([1], [0]))
    document = json.loads(run.inclusion.read_bytes())
    document["rows"][0]["status"] = "fine"
    run.inclusion.write_text(json.dumps(document))
    with pytest.raises(BadInput, match="known: included, excluded, lost"):
        read_rows(run)
