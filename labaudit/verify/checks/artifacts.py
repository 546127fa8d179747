"""Is every stored object what its name says, and does every trial's list of artifacts hold?"""

from __future__ import annotations

from collections.abc import Iterator

from labaudit.errors import BadInput
from labaudit.verify.run_view import RunView, artifact_list_path, is_artifact_line
from labaudit.verify.sources import CannotRead
from labaudit.verify.verdict import Finding


def artifact_lists_are_well_formed(view: RunView) -> Iterator[Finding]:
    """Each line of each artifacts.jsonl names an artifact, its size and its sidecar's digest, sorted, once."""
    lists = [artifact_list_path(None)] if artifact_list_path(None) in view.listed else []
    for trial_id, record in view.records():
        if any(entry["path"] == "artifacts.jsonl" for entry in record["files"]):
            lists.append(artifact_list_path(trial_id))
    for path in lists:
        before = ""
        try:
            for number, line in view.lines(path):
                if not is_artifact_line(line):
                    yield Finding("artifact_list_malformed", f"{path}:{number}", "the line names no artifact")
                elif line["ref"] <= before:
                    yield Finding("artifact_list_malformed", f"{path}:{number}", "the lines are not sorted and unique")
                else:
                    before = line["ref"]
        except CannotRead:
            continue  # the step that hashes trial files names it
        except BadInput as error:
            yield Finding("artifact_list_malformed", error.where, error.what)


def artifacts_are_what_their_names_say(view: RunView) -> Iterator[Finding]:
    """Objects by their name, sizes and sidecars by every list that names them."""
    done: dict[bytes, int] = {}  # what was found right; a fingerprint, because a run may list a million objects
    for trial_id in (None, *view.trial_ids):
        for line in view.artifact_lines(trial_id):
            name = line["ref"][18:]
            key, listed = bytes.fromhex(name), hash((line["size"], line["meta_sha256"]))
            if done.get(key) != listed:
                done[key] = listed
                yield from _object(view, name, line["size"])
                yield from _sidecar(view, name, line["meta_sha256"], artifact_list_path(trial_id))
    for path, entry in view.listed.items():
        if path.startswith("artifacts/sha256/") and path[17:] != entry["sha256"]:
            yield Finding("artifact_misnamed", path, "the manifest gives this object another hash than its name")


def _object(view: RunView, name: str, size: int) -> Iterator[Finding]:
    path = f"artifacts/sha256/{name}"
    try:
        found, length = view.source.hash(path)
    except CannotRead as error:
        yield error.finding
        return
    if found != name:
        yield Finding("artifact_misnamed", path, f"its bytes have sha256 {found[:16]}...")
    elif length != size:
        yield Finding("size_mismatch", path, f"has {length} bytes, {size} are listed")


def _sidecar(view: RunView, name: str, sha256: str, listed_in: str) -> Iterator[Finding]:
    path = f"artifacts/meta/{name}.json"
    try:
        found, _ = view.source.hash(path)
    except CannotRead as error:
        yield error.finding
        return
    if found != sha256:
        yield Finding("digest_mismatch", path, f"is not the sidecar that {listed_in} names")
