"""The publication log under `log/` of a site: derived again from its entries, and compared with a head seen before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from labaudit.attest.checkpoint import MAX_CHECKPOINT, Checkpoint, parse_checkpoint
from labaudit.attest.log_key import NoteVerifier
from labaudit.attest.publication_log import MAX_ENTRY, WIDTH, log_origin, parse_entries, render_log
from labaudit.core.merkle import consistency_proof, leaf_hash, root_of_hashes, verify_consistency
from labaudit.errors import BadInput
from labaudit.verify.seen import compare_heads, parse_seen
from labaudit.verify.sources import CannotRead, Source
from labaudit.verify.verdict import Finding

PREFIX = "log/"
_HEAD = "log/checkpoint"
_ENTRIES = "log/tile/entries"
_MAX_TILE = WIDTH * (MAX_ENTRY + 2)
_MAX_DIGITS = 12
# A quarter of a million checkpoints; more would be read into memory before anyone can tell what they are.
MAX_LOG = 48 * 1024 * 1024


def log_holds(
    source: Source, key_text: str | None, seen: bytes | None, *, signed: bool, published: Sequence[str]
) -> Iterator[Finding]:
    """Head, tiles and entries agree, the checkpoints that the site publishes stand in it, and so does an old head.

    `published` are the paths of those checkpoints; the site's statement (`signed`: there is one) names the log's key.
    """
    files = _files(source, "log")
    if not files:
        if seen is not None:
            yield Finding("seen_rollback", _HEAD, "you saw a publication log, and there is none now")
        elif key_text is not None:
            yield Finding("checkpoint_missing", _HEAD, "the site's statement names a log, and there is none")
        return
    if signed and key_text is None:
        yield Finding("extra_file", _HEAD, "the site's statement names no publication log")
    try:
        head = parse_checkpoint(source.read(_HEAD, MAX_CHECKPOINT), where=_HEAD)
        entries = _entries(source, files)
    except CannotRead as error:
        yield error.finding
        return
    except BadInput as error:
        yield Finding("log_malformed", error.where or _HEAD, error.what)
        return
    hashes = [leaf_hash(entry) for entry in entries]
    yield from _own_head(head, hashes, key_text)
    yield from _tiles(source, files, entries)
    yield from _published(source, published, entries)
    if seen is not None:
        yield from _against(seen, head, hashes, _key(key_text))


def _own_head(head: Checkpoint, hashes: list[bytes], key_text: str | None) -> Iterator[Finding]:
    if (head.size, head.root) != (len(hashes), root_of_hashes(hashes)):
        yield Finding("log_mismatch", _HEAD, "the entries do not give the size and root of the head")
    key = _key(key_text)
    if key is None:
        return
    if key.name != log_origin(key.raw) or head.origin != key.name:
        yield Finding("checkpoint_origin", _HEAD, f"is of {head.origin[:100]!r}, not of the log of this key")
    elif not head.signed_by(key):
        yield Finding("checkpoint_signature", _HEAD, "the log key in the site's statement did not sign it")


def _tiles(source: Source, files: list[str], entries: list[bytes]) -> Iterator[Finding]:
    expected = {PREFIX + path: data for path, data in render_log(entries).items()}
    for path, data in expected.items():
        try:
            if source.read(path, _MAX_TILE) != data:
                yield Finding("log_mismatch", path, "is not the tile that the entries give")
        except CannotRead as error:
            yield error.finding
    for path in files:
        if path != _HEAD and path not in expected:
            yield Finding("extra_file", path, "no tile of this log has this name")


def _published(source: Source, paths: Sequence[str], entries: list[bytes]) -> Iterator[Finding]:
    known = set(entries)
    for path in paths:
        try:
            if source.read(path, MAX_CHECKPOINT) not in known:
                yield Finding("log_mismatch", path, "this checkpoint is published, and does not stand in the log")
        except CannotRead:
            continue  # the step that hashes files names it


def _against(seen: bytes, head: Checkpoint, hashes: list[bytes], key: NoteVerifier | None) -> Iterator[Finding]:
    old = parse_seen(seen)
    if isinstance(old, Finding):
        yield old
        return
    findings = list(compare_heads(old, head, _HEAD, key))
    yield from findings
    if findings or old.size == 0 or head.size <= old.size or len(hashes) != head.size:
        return
    proof = consistency_proof(hashes, old.size)
    if not verify_consistency(old.size, head.size, old.root, head.root, proof):
        yield Finding("seen_fork", _HEAD, f"the log of {old.size} entries that you saw is no start of this one")


def _key(text: str | None) -> NoteVerifier | None:
    try:
        return None if text is None else NoteVerifier.parse(text)
    except BadInput:
        return None


def _files(source: Source, folder: str) -> list[str]:
    found, waiting = [], [folder]
    while waiting:
        current = waiting.pop()
        try:
            entries = source.entries(current)
        except CannotRead:
            continue
        for entry in entries:
            path = f"{current}/{entry.name}"
            if entry.kind == "folder":
                waiting.append(path)
            elif entry.kind == "file":
                found.append(path)
    return sorted(found)


def _entries(source: Source, files: list[str]) -> list[bytes]:
    """All entries, tile after tile; which tile comes when follows from its name's digits."""
    tiles: dict[int, tuple[int, str]] = {}
    for path in files:
        if path.startswith(f"{_ENTRIES}/"):
            name, _, width = path.removeprefix(f"{_ENTRIES}/").partition(".p/")
            digits = name.replace("/", "").replace("x", "")
            if not _is_number(digits) or (width and not _is_number(width)):
                continue  # no tile; the comparison with the tiles of this log calls it extra
            number, wide = int(digits), int(width or WIDTH)
            tiles[number] = max(tiles.get(number, (0, "")), (wide, path))
    entries: list[bytes] = []
    total = 0
    for _, (_, path) in sorted(tiles.items()):
        data = source.read(path, _MAX_TILE)
        total += len(data)
        if total > MAX_LOG:
            raise BadInput(f"the log's entries are more than {MAX_LOG} bytes", where=path)
        entries += parse_entries(data, where=path)
    return entries


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
