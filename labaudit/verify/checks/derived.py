"""Are the copies that no signature covers equal to what they are copies of?"""

from __future__ import annotations

from collections.abc import Iterator

from labaudit.attest.bundles import MAX_BUNDLE
from labaudit.attest.derived_files import (
    SUMS_NAME,
    TRUSTED_ROOT_NAME,
    artifact_sums,
    envelopes_file,
    sum_line,
    trusted_root_bytes,
)
from labaudit.core.digest import sha256_hex
from labaudit.verify.run_view import MAX_LINE, RunView
from labaudit.verify.sources import CannotRead
from labaudit.verify.verdict import Finding


def copies_are_equal(view: RunView) -> Iterator[Finding]:
    """The envelope file and the empty trusted root."""
    if view.manifest is None:
        return  # the copy's name follows from the run's id
    name = f"attestations/{view.run_id}.intoto.jsonl"
    found = [view.bundle(kind) for kind in view.kinds]
    whole = [item.raw for item in found if not isinstance(item, Finding)]
    try:
        stored = view.source.read(name, MAX_BUNDLE)
        if len(whole) == len(found) and stored != envelopes_file(whole):
            yield Finding("copy_differs", name, "does not hold the envelopes of the bundles beside it")
    except CannotRead as error:
        yield error.finding
    path = f"attestations/{TRUSTED_ROOT_NAME}"
    try:
        if view.source.read(path, MAX_LINE) != trusted_root_bytes():
            yield Finding("copy_differs", path, "is not the empty trusted root")
    except CannotRead as error:
        yield error.finding


def sums_list_every_file(view: RunView) -> Iterator[Finding]:
    """SHA256SUMS is what the manifest, the records and the attestations give, line by line."""
    path = f"attestations/{SUMS_NAME}"
    if view.totals is None or view.manifest is None:
        return
    try:
        with view.source.open(path) as stream:
            for number, expected in enumerate(_expected(view), start=1):
                line = stream.readline(MAX_LINE)
                if line != expected:
                    what = f"line {number} is not the one for {expected[66:].decode().strip()[:200]}"
                    yield Finding("copy_differs", f"{path}:{number}", what)
                    return
            if stream.read(1):
                yield Finding("copy_differs", path, "goes on after the last file")
    except CannotRead as error:
        yield error.finding


def _expected(view: RunView) -> Iterator[bytes]:
    yield sum_line(str(view.manifest_sha256), "manifest.json")
    for path, entry in view.listed.items():
        yield sum_line(entry["sha256"], path)
    seen: set[bytes] = set()
    yield from artifact_sums(view.artifact_lines(), seen)
    for trial_id, record in view.records():
        prefix = f"trials/{trial_id}/"
        yield sum_line(sha256_hex(view.record_bytes(trial_id)), f"{prefix}trial_record.json")
        for entry in record["files"]:
            yield sum_line(entry["sha256"], prefix + entry["path"])
        yield from artifact_sums(view.artifact_lines(trial_id), seen)
    for name in sorted(view.attestation_files):
        if name != SUMS_NAME:
            yield sum_line(view.source.hash(f"attestations/{name}")[0], f"attestations/{name}")
