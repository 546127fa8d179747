"""Arrays to Parquet columns and back: the one place that meets pyarrow.

Writer settings are fixed and no clock or library metadata enters, so that one version of the writer gives one file for
one input.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from numpy.typing import NDArray

from labaudit.errors import BadInput

# pyarrow has no types of its own; outside this file a column is only passed on.
Column: TypeAlias = Any


def parquet_bytes(columns: Mapping[str, Column]) -> bytes:
    """The columns, in their order, as a Parquet file."""
    sink = io.BytesIO()
    pq.write_table(
        pa.table(dict(columns)),
        sink,
        version="2.6",
        data_page_version="1.0",
        compression="zstd",
        compression_level=3,
        use_dictionary=True,
        write_statistics=True,
        row_group_size=1 << 16,
        store_schema=False,
    )
    return sink.getvalue()


def texts(values: Iterable[str | None]) -> Column:
    """Text, null where there is none."""
    return pa.array(list(values), type=pa.string())


def whole_numbers(values: NDArray[np.int64]) -> Column:
    """Integers, none of them missing."""
    return pa.array(values, type=pa.int64())


def numbers(values: NDArray[np.float64]) -> Column:
    """Doubles, null where there is NaN."""
    return pa.array(values, mask=np.isnan(values), type=pa.float64())


def coded_texts(codes: NDArray[Any], names: Sequence[str], absent: NDArray[np.bool_] | None = None) -> Column:
    """Text by code, null where `absent` says so."""
    indices = pa.array(codes.astype(np.int32), mask=absent)
    return pa.DictionaryArray.from_arrays(indices, pa.array(list(names), type=pa.string()))


class StoredColumns:
    """A Parquet file's columns as NumPy arrays; BadInput when it is none or lacks one."""

    def __init__(self, path: Path, wanted: Sequence[str], coded: Sequence[str]) -> None:
        self.path = path
        try:
            self._table = pq.read_table(path, columns=list(wanted), read_dictionary=list(coded))
        except (OSError, pa.ArrowException) as error:
            raise unreadable(path, error) from error
        lacking = [name for name in wanted if name not in self._table.column_names]
        if lacking:
            raise BadInput(f"has no column {lacking[0]!r}", where=str(path))

    @staticmethod
    def names(path: Path) -> list[str]:
        """The columns that the file has."""
        try:
            return [str(name) for name in pq.read_schema(path).names]
        except (OSError, pa.ArrowException) as error:
            raise unreadable(path, error) from error

    def texts(self, name: str) -> list[str]:
        """A text column."""
        found: list[str] = self._table[name].to_pylist()
        return found

    def whole_numbers(self, name: str) -> NDArray[np.int64]:
        """An integer column."""
        return np.asarray(self._table[name].to_numpy(), dtype=np.int64)

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A number column, NaN where it is null."""
        return np.asarray(self._table[name].to_numpy(zero_copy_only=False), dtype=np.float64)

    def codes(self, name: str) -> tuple[tuple[str, ...], NDArray[np.int32]]:
        """Sorted distinct texts and the code of each row; -1 for null."""
        joined = self._table[name].unify_dictionaries().combine_chunks()
        if isinstance(joined, pa.ChunkedArray):
            joined = pa.concat_arrays(joined.chunks) if joined.num_chunks else pa.array([], type=joined.type)
        names = [str(text) for text in joined.dictionary.to_pylist()]
        order = sorted(range(len(names)), key=names.__getitem__)
        rank = np.full(len(names) + 1, -1, dtype=np.int32)
        for place, original in enumerate(order):
            rank[original] = place
        indices = joined.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return tuple(names[i] for i in order), rank[indices]


def unreadable(path: Path, error: Exception) -> BadInput:
    """The error for a file that is no Parquet."""
    return BadInput(f"is no readable Parquet file: {error}", where=str(path))


def first_difference(stored: Path, fresh: Path) -> str | None:
    """Where two Parquet files part in content: the column and the first row, or None when they do not."""
    tables = []
    for path in (stored, fresh):
        try:
            tables.append(pq.read_table(path))
        except (OSError, pa.ArrowException) as error:
            return f"{'stored' if path == stored else 'recomputed'}: {unreadable(path, error).what}"
    first, second = tables
    if first.column_names != second.column_names:
        return f"columns {', '.join(sorted({*first.column_names} ^ {*second.column_names})) or 'in another order'}"
    if first.num_rows != second.num_rows:
        return f"{first.num_rows} rows stored, {second.num_rows} recomputed"
    for name in first.column_names:
        if not first[name].equals(second[name]):
            pairs = zip(first[name].to_pylist(), second[name].to_pylist(), strict=True)
            row = next((number for number, (a, b) in enumerate(pairs) if a != b), 0)
            return f"column {name}, row {row}"
    return None
