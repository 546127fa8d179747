"""Published checkpoints to a tlog-tiles log: a reader who kept an old head can ask for proof that nothing was removed.

    log/checkpoint                       the signed head
    log/tile/<level>/<number>[.p/<n>]    hashes, 256 per tile
    log/tile/entries/<number>[.p/<n>]    the entries: checkpoints of published runs, each after its length

An entry is the exact bytes of a run's `attestations/checkpoint`. `append_run` is idempotent: publishing a run twice
adds nothing. Every file is derived from the entries and the key, so verify renders them again and compares.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from labaudit.attest.checkpoint import PUBLICATION_ORIGIN, Checkpoint, sign_checkpoint
from labaudit.attest.log_key import LogKey, NoteVerifier
from labaudit.core.merkle import leaf_hash, node_hash, root_of_hashes
from labaudit.errors import BadInput
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder

WIDTH = 256
MAX_ENTRY = 0xFFFF
MAX_ENTRIES = 1_000_000


def log_origin(raw_key: bytes) -> str:
    """The name of a lab's log: it follows from the key, so a log cannot speak for another lab."""
    return PUBLICATION_ORIGIN + hashlib.sha256(raw_key).hexdigest()[:16]


def publication_verifier(key: LogKey) -> NoteVerifier:
    """The verifier key of a lab's log; its text belongs into the signed statement of a site."""
    return key.verifier(log_origin(key.verifier("").raw))


def append_run(lab: LabFolder, run: RunFolder, key: LogKey) -> Checkpoint:
    """Adds a run's checkpoint to the lab's log, unless it stands there already, and gives the log's head."""
    return append(lab.log, atomic.read_bytes(run.checkpoint, max_bytes=MAX_ENTRY), key)


def append(folder: Path, entry: bytes, key: LogKey) -> Checkpoint:
    """Adds one entry. New tiles come first and the head last, so a reader never sees a head without its tiles."""
    if len(entry) > MAX_ENTRY:
        raise BadInput(f"an entry of {len(entry)} bytes does not fit into the log")
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        entries = read_entries(folder)
        if entry not in entries:
            entries.append(entry)
        head = sign_head(entries, key)
        files = render_log(entries)
        for path, data in files.items():
            target = folder / path
            if not target.is_file() or target.read_bytes() != data:
                atomic.write_bytes(target, data)
        atomic.write_bytes(folder / "checkpoint", head.render())
        _remove_old_partials(folder, set(files))
    return head


def sign_head(entries: Sequence[bytes], key: LogKey) -> Checkpoint:
    """The log's signed head over these entries."""
    root = root_of_hashes(leaf_hash(entry) for entry in entries)
    return sign_checkpoint(publication_verifier(key).name, len(entries), root, key)


def render_log(entries: Sequence[bytes]) -> dict[str, bytes]:
    """Every tile of a log by its path, without the head."""
    files = {}
    for number, start in enumerate(range(0, len(entries), WIDTH)):
        part = entries[start : start + WIDTH]
        files[f"tile/entries/{_tile_name(number, len(part))}"] = b"".join(_framed(entry) for entry in part)
    level, hashes = 0, [leaf_hash(entry) for entry in entries]
    while hashes:
        above = []
        for number, start in enumerate(range(0, len(hashes), WIDTH)):
            part = hashes[start : start + WIDTH]
            files[f"tile/{level}/{_tile_name(number, len(part))}"] = b"".join(part)
            if len(part) == WIDTH:
                above.append(_perfect_root(part))
        level, hashes = level + 1, above
    return files


def read_entries(folder: Path) -> list[bytes]:
    """The entries of a log on disk, from its entry tiles."""
    entries: list[bytes] = []
    for number in range(MAX_ENTRIES // WIDTH):
        found = _entry_tile(folder / "tile" / "entries", number)
        if found is None:
            break
        part = list(parse_entries(found.read_bytes(), where=str(found)))
        entries += part
        if len(part) < WIDTH:
            break
    return entries


def parse_entries(data: bytes, *, where: str) -> Iterator[bytes]:
    """The entries of one tile."""
    place = 0
    while place < len(data):
        if place + 2 > len(data):
            raise BadInput("an entry tile is cut off", where=where)
        (length,) = struct.unpack_from(">H", data, place)
        place += 2
        if place + length > len(data):
            raise BadInput("an entry tile is cut off", where=where)
        yield data[place : place + length]
        place += length


def _framed(entry: bytes) -> bytes:
    return struct.pack(">H", len(entry)) + entry


def _perfect_root(hashes: Sequence[bytes]) -> bytes:
    row = list(hashes)
    while len(row) > 1:
        row = [node_hash(row[index], row[index + 1]) for index in range(0, len(row), 2)]
    return row[0]


def _tile_name(number: int, width: int) -> str:
    """`x001/x234/067`, with `.p/<width>` for a tile that is not full (C2SP tlog-tiles)."""
    name = f"{number % 1000:03d}"
    while number >= 1000:
        number //= 1000
        name = f"x{number % 1000:03d}/{name}"
    return name if width == WIDTH else f"{name}.p/{width}"


def _entry_tile(folder: Path, number: int) -> Path | None:
    full = folder / _tile_name(number, WIDTH)
    if full.is_file():
        return full
    partial = full.with_name(f"{full.name}.p")
    widths = [int(path.name) for path in partial.iterdir() if path.name.isdigit()] if partial.is_dir() else []
    return partial / str(max(widths)) if widths else None


def _remove_old_partials(folder: Path, wanted: set[str]) -> None:
    """Partial tiles that a larger one replaced; they hold nothing that the larger one lacks."""
    for path in sorted(folder.glob("tile/**/*.p/*")):
        if path.relative_to(folder).as_posix() not in wanted:
            path.unlink()
            if not any(path.parent.iterdir()):
                path.parent.rmdir()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
