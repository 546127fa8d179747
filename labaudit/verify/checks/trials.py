"""Do the trial records fit schedule and plan, do their files have their digests, and do they make the run tree?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

from labaudit.attest.run_reader import Json
from labaudit.core import ids
from labaudit.core.canonical import is_canonical
from labaudit.core.merkle import root_of_hashes
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput
from labaudit.records.schema_registry import fast_validator, validate
from labaudit.verify.checks.manifest import digest_finding
from labaudit.verify.checks.paths import is_safe_path
from labaudit.verify.run_view import RunView, is_plain_name
from labaudit.verify.sources import CannotRead
from labaudit.verify.verdict import Finding

# Written by the runner, so their ids are ours to keep right; a harness may write anything into its own files.
MAX_OWN = 4 * 1024 * 1024
_WITH_IDS = ("trial_input.json", "metrics.json", "state_inventory.json", "grades.json")
ATTEMPT_HEAD = re.compile(r"attempts/([1-9][0-9]{0,8})/events\.head")
_ROW_KEYS = ("index", "trial_id", "variant_id", "task_id", "repl_idx")


def schedule_is_well_formed(view: RunView) -> Iterator[Finding]:
    """One canonical row per trial, numbered from 0, each with the id that its names give."""
    path = "schedule.jsonl"
    seen: set[str] = set()
    digest = None if view.manifest is None else view.manifest["resolved_digest"]
    try:
        for number, row in view.lines(path):
            where = f"{path}:{number}"
            if set(row) != set(_ROW_KEYS) or not _row_types(row):
                yield Finding("document_malformed", where, "is no schedule row")
                continue
            expected = ids.trial_id(str(digest), row["variant_id"], row["task_id"], row["repl_idx"])
            if row["index"] != number - 1 or row["trial_id"] in seen:
                yield Finding("schedule_mismatch", where, "is not numbered in order, or stands there twice")
            elif digest is not None and row["trial_id"] != expected:
                yield Finding("schedule_mismatch", where, f"the trial's names give the id {expected}")
            seen.add(row["trial_id"])
        yield from _whole_plan(view)
    except BadInput as error:
        yield Finding("document_malformed", error.where or path, error.what)
    except CannotRead as error:
        if view.manifest is not None and path not in view.listed:
            yield error.finding


def _whole_plan(view: RunView) -> Iterator[Finding]:
    """The plan says how many trials there are, and of what; a signer cannot leave out the one that does not suit."""
    plan, path = view.document("resolved_experiment.json"), "schedule.jsonl"
    if plan is None or not fast_validator("resolved_experiment_v0_3").is_valid(plan):
        return
    rows, planned = view.schedule, plan["schedule"]["trials"]
    if len(rows) != planned:
        yield Finding("schedule_mismatch", path, f"has {len(rows)} trials, {planned} were planned")
    variants, replications = {variant["id"] for variant in plan["variants"]}, plan["design"]["replications"]
    for number, row in enumerate(rows, start=1):
        index = row.get("repl_idx")
        if str(row.get("variant_id")) not in variants or not isinstance(index, int) or not 0 <= index < replications:
            yield Finding("schedule_mismatch", f"{path}:{number}", "is of a variant or replicate that was not planned")
    tasks = len({str(row.get("task_id")) for row in rows})
    if tasks > plan["dataset"]["count"]:
        what = f"has trials of {tasks} tasks, the plan has {plan['dataset']['count']}"
        yield Finding("schedule_mismatch", path, what)


def _row_types(row: Json) -> bool:
    texts = all(isinstance(row[key], str) for key in ("trial_id", "variant_id", "task_id"))
    return texts and type(row["index"]) is int and type(row["repl_idx"]) is int and is_plain_name(row["trial_id"])


def trial_records_fit_the_plan(view: RunView) -> Iterator[Finding]:
    """Every scheduled trial has a record, and the record is of this trial of this run."""
    resolved = view.document("resolved_experiment.json")
    for row in view.schedule:
        trial_id = row.get("trial_id")
        if not isinstance(trial_id, str) or not is_plain_name(trial_id):
            continue
        path = f"trials/{trial_id}/trial_record.json"
        try:
            data = view.record_bytes(trial_id)
            record = parse_object(data, where=path)
        except CannotRead as error:
            yield error.finding
            continue
        except BadInput as error:
            yield Finding("record_malformed", path, error.what)
            continue
        if not fast_validator("trial_record_v1").is_valid(record):
            first = validate("trial_record_v1", record)[0]
            yield Finding("record_malformed", path, f"{first.path}: {first.message}")
            continue
        if not is_canonical(data):
            yield Finding("record_malformed", path, "is not in canonical form")
        yield from _record_findings(view, path, row, record, resolved)


def _record_findings(view: RunView, path: str, row: Json, record: Json, resolved: Json | None) -> Iterator[Finding]:
    names = {key: row.get(key) for key in _ROW_KEYS if key != "index"}
    names["run_id"] = view.run_id if view.manifest is not None else record["ids"]["run_id"]
    if record["ids"] != names or record["index"] != row.get("index"):
        yield Finding("record_mismatch", path, "is not the record of this scheduled trial")
    if view.manifest is not None and record["resolved_digest"] != view.manifest["resolved_digest"]:
        yield Finding("record_mismatch", path, "was made under another plan")
    if (record["status"] == "lost") != (record["outcome"] is None):
        yield Finding("record_mismatch", path, f"a {record['status']} trial cannot have outcome {record['outcome']}")
    if record["events"] is None and record["status"] == "completed" and record["evidence_origin"] != "imported":
        yield Finding("record_mismatch", path, "a completed trial has an event log")
    yield from _files_findings(path, record)
    yield from _attempts(path, record)
    if resolved is not None and fast_validator("resolved_experiment_v0_3").is_valid(resolved):
        runtime = resolved["runtime"]
        if record["image_digest"] != runtime["image"]["id"]:
            yield Finding("image_mismatch", path, f"ran {record['image_digest']}, planned was {runtime['image']['id']}")
        harness = {key: runtime["harness"].get(key) for key in ("source_digest", "exec_digest")}
        if record["harness"] != harness:
            yield Finding("record_mismatch", path, "names another harness than the plan")


def _attempts(path: str, record: Json) -> Iterator[Finding]:
    """Attempts are counted, and each that was lost before the one that counts left its sealed log."""
    if record["evidence_origin"] == "imported":
        return
    if record["attempts"] != record["attempt"]:
        what = f"{record['attempts']} attempts were made, and number {record['attempt']} counts"
        yield Finding("record_mismatch", path, what)
    names = {entry["path"] for entry in record["files"]}
    kept = {match[1] for name in names if (match := ATTEMPT_HEAD.fullmatch(name))}
    earlier = record["attempt"] - 1
    # As many steps as there are files, whatever number a record claims.
    gone = next((number for number in range(1, min(earlier, len(kept) + 1) + 1) if str(number) not in kept), None)
    if gone is not None:
        yield Finding("record_mismatch", path, f"nothing is kept of attempt {gone}, which was lost before this one")
    elif len(kept) > earlier:
        yield Finding("record_mismatch", path, "keeps logs of attempts that it does not count")


def _files_findings(path: str, record: Json) -> Iterator[Finding]:
    names = [entry["path"] for entry in record["files"]]
    for name in names:
        if not is_safe_path(name) or name == "trial_record.json":
            yield Finding("path_unsafe", path, f"lists {name[:200]!r}, which leaves the trial or is ambiguous")
    if len(set(names)) != len(names):
        yield Finding("path_duplicate", path, "lists a file twice")
    elif names != sorted(names):
        yield Finding("record_malformed", path, "its files are not sorted by path")
    digests = {entry["path"]: entry["sha256"] for entry in record["files"]}
    network = digests.get("network_events.jsonl")
    if record["network_evidence_digest"] != (f"sha256:{network}" if network else None):
        yield Finding("network_evidence_mismatch", path, "its network evidence is not the network log it lists")
    events = record["events"]
    if events is not None and digests.get("events.jsonl") != events["sha256"]:
        yield Finding("events_head_mismatch", path, "its event totals are not of the events.jsonl it lists")


def trial_files_have_their_digests(view: RunView) -> Iterator[Finding]:
    """Every file that a record lists is there, with its size and hash."""
    for trial_id, record in view.records():
        for entry in record["files"]:
            if is_safe_path(entry["path"]):
                finding = digest_finding(view, f"trials/{trial_id}/{entry['path']}", entry["sha256"], entry["size"])
                if finding:
                    yield finding


def trial_documents_are_of_their_trial(view: RunView) -> Iterator[Finding]:
    """What a trial's documents say about themselves is what its record says: ids everywhere, the outcome in metrics."""
    for trial_id, record in view.records():
        listed = {entry["path"] for entry in record["files"]}
        for name in _WITH_IDS:
            if name not in listed:
                continue
            path = f"trials/{trial_id}/{name}"
            try:
                value = orjson.loads(view.source.read(path, MAX_OWN))
            except (CannotRead, orjson.JSONDecodeError):
                continue  # hashed elsewhere; a harness may write what is no JSON, and then it is evidence of that
            if not isinstance(value, dict):
                continue
            if value.get("ids", record["ids"]) != record["ids"]:
                yield Finding("record_mismatch", path, "is of another trial than its record")
            if name == "state_inventory.json":
                yield from _observed_identity(path, value, record)
            if name == "metrics.json" and record["status"] == "completed" and value.get("outcome") != record["outcome"]:
                what = f"its outcome {value.get('outcome')} is not the {record['outcome']} of the record"
                yield Finding("record_mismatch", path, what)


def _observed_identity(path: str, inventory: Any, record: Json) -> Iterator[Finding]:
    """The image and the harness that the sandbox reports are those of the record, as far as it reports any."""
    ext, harness = inventory.get("ext"), inventory.get("harness_identity")
    facts = ext.get("engine_facts") if isinstance(ext, dict) else None
    image = facts.get("image") if isinstance(facts, dict) else None
    if image is not None and image != record["image_digest"]:
        yield Finding("image_mismatch", path, f"reports {str(image)[:80]}, the record says {record['image_digest']}")
    for key in ("source_digest", "exec_digest"):
        found = harness.get(key) if isinstance(harness, dict) else None
        if found is not None and found != record["harness"][key]:
            yield Finding("record_mismatch", path, f"reports another {key} of the harness than the record")


def records_make_the_run_tree(view: RunView) -> Iterator[Finding]:
    """The RFC 6962 root over the exact record bytes, in schedule order, is the manifest's."""
    if view.manifest is None or view.leaves is None:
        return
    tree: Json = {"size": len(view.leaves), "root": root_of_hashes(view.leaves).hex()}
    sealed = view.manifest["run_tree"]
    if tree != sealed:
        what = f"the records give size {tree['size']}, root {tree['root'][:16]}...; "
        what += f"sealed: {sealed['size']}, {sealed['root'][:16]}..."
        yield Finding("run_tree_mismatch", "manifest.json", what)
