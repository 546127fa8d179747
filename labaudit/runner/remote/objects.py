"""Artifacts in any place that fsspec reaches, named by their hash: a folder, a bucket, memory.

Nothing in such a place is trusted: what comes back is hashed before it counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labaudit.core.digest import CHUNK
from labaudit.errors import BadInput, Contradiction, EnvironmentLacks
from labaudit.store.artifact_store import ArtifactStore

# Buckets have no folders: asked for one, s3fs makes the bucket itself, and a misspelt name becomes a place.
BUCKETS = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oci", "oss"})


class RemoteObjects:
    """Objects below one URL, such as `s3://bucket/labaudit` or `file:///srv/objects`."""

    def __init__(self, url: str) -> None:
        import fsspec  # type: ignore[import-untyped]

        try:
            found: tuple[Any, str] = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError) as error:
            raise BadInput(f"no store can be reached by {url!r}: {error}", hint="an fsspec URL") from error
        self._files, self._root = found
        self._url = url

    def upload(self, path: Path) -> None:
        """Puts a stored object (its file name is its hash) there, unless it is there already."""
        target = self._path(path.name)
        try:
            if not self._files.exists(target):
                if not BUCKETS.intersection(_protocols(self._files)):
                    self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
                self._files.put_file(str(path), target)
        except Exception as error:
            # Each backend raises what it likes; for us it is one thing.
            raise EnvironmentLacks(f"cannot be written: {error}", where=self._url) from error

    def fetch(self, digest: str, store: ArtifactStore, content_type: str, meta: dict[str, object]) -> str:
        """Takes an object into a store; Contradiction when the bytes there are not what their name says."""
        try:
            with self._files.open(self._path(digest), "rb", block_size=CHUNK) as stream:
                reference = store.put(stream, content_type, meta, durable=False)
        except FileNotFoundError as error:
            raise Contradiction(f"object {digest[:16]}… was not handed over", where=self._url) from error
        except Exception as error:
            raise EnvironmentLacks(f"cannot be read: {error}", where=self._url) from error
        if not reference.endswith(digest):
            raise Contradiction(f"object {digest[:16]}… has other bytes than its name says", where=self._url)
        return reference

    def _path(self, digest: str) -> str:
        return f"{self._root.rstrip('/')}/sha256/{digest[:2]}/{digest}"


def _protocols(files: Any) -> tuple[str, ...]:
    found: str | tuple[str, ...] = files.protocol
    return (found,) if isinstance(found, str) else tuple(found)
