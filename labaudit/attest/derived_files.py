"""Files under attestations/ that no signature covers because they are derived: each can be written again and compared.

There are three of them, beside the proofs:

    <run_id>.intoto.jsonl   the envelopes of all bundles, one per line
    trusted_root.json       empty; cosign's offline key mode asks for one
    SHA256SUMS              every file of the run but itself and the proofs, for `sha256sum -c`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import orjson

from labaudit.attest.bundles import EMPTY_TRUSTED_ROOT
from labaudit.attest.run_reader import Json, json_lines, scheduled_trials
from labaudit.core.canonical import canonical_bytes
from labaudit.core.digest import hash_file, hex_of_reference, sha256_hex
from labaudit.core.strict_json import parse_object
from labaudit.store import atomic
from labaudit.store.run_folder import RunFolder, TrialFolder

SUMS_NAME = "SHA256SUMS"
TRUSTED_ROOT_NAME = "trusted_root.json"


def envelopes_file(bundles: Iterable[bytes]) -> bytes:
    """The DSSE envelopes of all bundles as JSON lines, in the order of the kinds."""
    return b"".join(canonical_bytes(orjson.loads(data)["dsseEnvelope"]) + b"\n" for data in bundles)


def trusted_root_bytes() -> bytes:
    """The empty trusted root."""
    return canonical_bytes(EMPTY_TRUSTED_ROOT)


def sum_line(sha256: str, path: str) -> bytes:
    """One line as `sha256sum` prints it; a name with a backslash or newline is escaped as coreutils does."""
    if "\\" in path or "\n" in path or "\r" in path:
        escaped = path.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        return f"\\{sha256}  {escaped}\n".encode()
    return f"{sha256}  {path}\n".encode()


def sums_of_run(run: RunFolder, manifest: Json, manifest_sha256: str) -> Iterator[bytes]:
    """The lines of attestations/SHA256SUMS: manifest, run-level files, trials in schedule order, then attestations."""
    yield sum_line(manifest_sha256, "manifest.json")
    for entry in manifest["files"]:
        yield sum_line(entry["sha256"], entry["path"])
    seen: set[bytes] = set()
    yield from artifact_sums(json_lines(run.artifact_list) if run.artifact_list.is_file() else (), seen)
    for trial in scheduled_trials(run):
        yield from trial_sums(trial.trial_id, trial.trial_record.read_bytes(), trial, seen)
    for path in sorted(run.attestations.iterdir()):
        if path.is_file() and path.name != SUMS_NAME and not path.name.startswith(atomic.TEMPORARY_PREFIX):
            yield sum_line(hash_file(path)[0], f"attestations/{path.name}")


def trial_sums(trial_id: str, data: bytes, trial: TrialFolder, seen: set[bytes]) -> Iterator[bytes]:
    """The lines of one trial: its record, its files, and artifacts that no trial before it named."""
    prefix = f"trials/{trial_id}/"
    record = parse_object(data, where=f"{prefix}trial_record.json")
    yield sum_line(sha256_hex(data), f"{prefix}trial_record.json")
    for entry in cast("list[Json]", record["files"]):
        yield sum_line(entry["sha256"], prefix + entry["path"])
    if trial.artifacts.is_file():
        yield from artifact_sums(json_lines(trial.artifacts), seen)


def artifact_sums(lines: Iterable[Json], seen: set[bytes]) -> Iterator[bytes]:
    """Object and sidecar of every artifact in a list that was not named before."""
    for line in lines:
        name = hex_of_reference(line["ref"])
        if bytes.fromhex(name) not in seen:
            seen.add(bytes.fromhex(name))
            yield sum_line(name, f"artifacts/sha256/{name}")
            yield sum_line(line["meta_sha256"], f"artifacts/meta/{name}.json")
