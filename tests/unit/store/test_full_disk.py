"""A disk that takes a part of a write: nothing is half there afterwards, and what was begun can be gone on with.

A limit on the size of files gives the same short writes as a full disk, and needs no mount.
"""

from __future__ import annotations

import io
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from labaudit.errors import EnvironmentLacks
from labaudit.store import atomic
from labaudit.store.artifact_store import ArtifactStore


@contextmanager
def _room_for(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_stream_that_does_not_fit_is_no_artifact_under_the_hash_of_the_whole(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    with _room_for(4096), pytest.raises(EnvironmentLacks):
        store.put(io.BytesIO(b"y" * 300_000))
    assert not list((tmp_path / "sha256").iterdir())
    reference = store.put(io.BytesIO(b"y" * 300_000))
    assert store.get(reference) == b"y" * 300_000


def test_a_line_that_does_not_fit_is_taken_back_and_said(tmp_path: Path) -> None:
    path = tmp_path / "registry.jsonl"
    atomic.append_line(path, {"a": 1})
    with _room_for(4096), pytest.raises(EnvironmentLacks, match="no space"):
        atomic.append_line(path, {"a": "x" * 9000})
    atomic.append_line(path, {"a": 2})
    assert path.read_bytes() == b'{"a":1}\n{"a":2}\n'


def test_a_first_write_that_does_not_fit_leaves_no_litter(tmp_path: Path) -> None:
    with _room_for(4096), pytest.raises(EnvironmentLacks):
        atomic.write_first(tmp_path / "meta.json", b"x" * 9000)
    assert not list(tmp_path.iterdir())


def test_an_object_whose_sidecar_never_came_is_cleared_away_and_others_stay(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    kept, torn = store.put(b"kept"), store.put(b"torn")
    store.meta_path(torn).unlink()
    store.remove_unfinished()
    assert list(store.references()) == [kept]
    assert store.put(b"torn") == torn
    assert store.meta(torn)["content_type"] == "application/octet-stream"
