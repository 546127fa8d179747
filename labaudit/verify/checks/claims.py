"""Do the run's own claims follow from its records: plan, variants, table of trials, SBOM subject?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from labaudit.attest.run_reader import Json
from labaudit.core.canonical import canonical_bytes
from labaudit.core.digest import sha256_hex
from labaudit.records.schema_registry import fast_validator
from labaudit.verify.grades_check import statuses_follow_from_the_evidence
from labaudit.verify.run_view import MAX_DOCUMENT, MAX_LINE, RunView
from labaudit.verify.sources import CannotRead
from labaudit.verify.verdict import Finding

_STATUSES = ("included", "excluded", "lost")


def resolved_digest_is_the_plans(view: RunView) -> Iterator[Finding]:
    """The manifest's resolved digest is that of resolved_experiment.json, and so says the .digest file."""
    if view.manifest is None:
        return
    sealed = view.manifest["resolved_digest"]
    try:
        data = view.source.read("resolved_experiment.json", MAX_DOCUMENT)
        if f"sha256:{sha256_hex(data)}" != sealed:
            yield Finding("resolved_digest_mismatch", "resolved_experiment.json", f"does not have the digest {sealed}")
        if view.source.read("resolved_experiment.digest", MAX_LINE) != sealed.encode():
            yield Finding("resolved_digest_mismatch", "resolved_experiment.digest", f"does not say {sealed}")
    except CannotRead:
        return  # the digest check names the file
    resolved = view.document("resolved_experiment.json")
    if resolved is not None and fast_validator("resolved_experiment_v0_3").is_valid(resolved):
        yield from _plan(view, resolved)


def _plan(view: RunView, resolved: Json) -> Iterator[Finding]:
    dataset = f"artifacts/sha256/{resolved['dataset']['artifact_ref'][18:]}"
    if resolved["dataset"]["sha256"] != resolved["dataset"]["artifact_ref"][18:]:
        yield Finding("resolved_digest_mismatch", "resolved_experiment.json", "names two digests for one dataset")
    totals = view.totals
    covered = totals is None or bytes.fromhex(resolved["dataset"]["sha256"]) in totals.artifacts
    if dataset not in view.listed and not covered:
        yield Finding("file_missing", dataset, "the dataset that the plan names is not in the run")
    for variant in resolved["variants"]:
        path = f"variants/{variant['id']}.json"
        try:
            if view.source.read(path, MAX_DOCUMENT) != canonical_bytes(variant):
                yield Finding("variant_mismatch", path, "is not the variant of the resolved plan")
        except CannotRead as error:
            yield error.finding
    planned = {f"variants/{variant['id']}.json" for variant in resolved["variants"]}
    for path in view.listed:
        if path.startswith("variants/") and path not in planned:
            yield Finding("variant_mismatch", path, "the resolved plan has no such variant")


def inclusion_follows_from_the_records(view: RunView) -> Iterator[Finding]:
    """One row per scheduled trial, with the outcome of its record; totals are counted."""
    path, value = "inclusion.json", view.document("inclusion.json")
    if value is None or not fast_validator("inclusion_v1").is_valid(value):
        return
    if view.manifest is not None and value["run_id"] != view.run_id:
        yield Finding("inclusion_mismatch", path, "is the table of another run")
    rows = value["rows"]
    if not view.schedule_is_known:
        return  # the check of the schedule says why
    if [row["trial_id"] for row in rows] != [row.get("trial_id") for row in view.schedule]:
        yield Finding("inclusion_mismatch", path, "does not have one row per scheduled trial, in order")
        return
    for row, planned in zip(rows, view.schedule, strict=True):
        record = view.record(row["trial_id"]) if isinstance(planned.get("trial_id"), str) else None
        if record is not None:
            wrong = _row_difference(row, planned, record)
            if wrong:
                yield Finding("inclusion_mismatch", path, f"trial {row['trial_id']}: {wrong}")
    counts = Counter(row["status"] for row in rows)
    counted = {"scheduled": len(rows)} | {status: counts[status] for status in _STATUSES}
    if value["totals"] != counted:
        yield Finding("inclusion_mismatch", path, f"its totals are not those counted from its rows: {counted}")
    yield from statuses_follow_from_the_evidence(view)


def _row_difference(row: Json, planned: Json, record: Json) -> str:
    for key in ("index", "variant_id", "task_id", "repl_idx"):
        if row[key] != planned.get(key):
            return f"{key} is not the schedule's"
    if (row["status"] == "lost") != (record["status"] == "lost"):
        return f"is {row['status']}, but its record says {record['status']}"
    if row["outcome"] != record["outcome"]:
        return f"outcome {row['outcome']} is not the {record['outcome']} of its record"
    if row["attempts"] != record["attempts"]:
        return f"{row['attempts']} attempts are not the {record['attempts']} of its record"
    return ""


def analysis_is_of_this_run(view: RunView) -> Iterator[Finding]:
    """The documents of the analysis name this run and its plan."""
    for name in ("summary", "comparisons", "exemplars", "suspects"):
        path = f"analysis/{name}.json"
        value = view.document(path) if path in view.listed else None
        if value is None:
            continue
        if view.manifest is not None and value.get("run_id", view.run_id) != view.run_id:
            yield Finding("analysis_mismatch", path, "is the analysis of another run")
        digest = value.get("resolved_digest")
        if digest is not None and view.manifest is not None and digest != view.manifest["resolved_digest"]:
            yield Finding("analysis_mismatch", path, "was made under another plan")


def analysis_follows_from_the_trials(view: RunView) -> Iterator[Finding]:
    """The analysis computed again from the trials, by a function that the caller brings along (it needs scipy)."""
    recompute = view.request.recompute_analysis
    if recompute is not None:
        yield from recompute(view.source.root)


def sboms_describe_the_image(view: RunView) -> Iterator[Finding]:
    """Each SBOM of the image names the digest of the image that was planned."""
    resolved: Any = view.document("resolved_experiment.json")
    if resolved is None or not fast_validator("resolved_experiment_v0_3").is_valid(resolved):
        return
    runtime = resolved["runtime"]
    subjects = {"image": runtime["image"]["id"], "harness": runtime["harness"].get("source_digest")}
    supplied = _supplied(view)
    for path in view.listed:
        kind = path.removeprefix("sbom/").split(".", 1)[0]
        if not path.startswith("sbom/") or kind not in subjects or path in supplied:
            continue
        document = view.document(path)
        if document is None:
            problem = view.document_problem(path)
            if problem is not None and problem.code == "document_malformed":
                yield problem._replace(code="sbom_malformed")
            continue
        named = sbom_subject(document)
        if named is None:
            yield Finding("sbom_malformed", path, "names no subject with a SHA-256")
        elif f"sha256:{named}" != subjects[kind]:
            yield Finding("sbom_subject", path, f"describes {named[:16]}..., the run used {subjects[kind]}")


def _supplied(view: RunView) -> set[str]:
    """SBOMs that somebody else wrote: labelled so, and not expected to name our digest."""
    attestation: Any = view.document("attestation.json") or {}
    documents = attestation.get("sbom", {}).get("documents", []) if isinstance(attestation.get("sbom"), dict) else []
    return {str(item.get("path")) for item in documents if isinstance(item, dict) and item.get("origin") == "supplied"}


def sbom_subject(document: Any) -> str | None:
    """The SHA-256 of the thing that a CycloneDX or SPDX document is about."""
    try:
        if "bomFormat" in document:
            hashes = document["metadata"]["component"]["hashes"]
            return next(str(item["content"]) for item in hashes if item["alg"] == "SHA-256")
        root = document["documentDescribes"][0]
        package = next(item for item in document["packages"] if item["SPDXID"] == root)
        return next(str(item["checksumValue"]) for item in package["checksums"] if item["algorithm"] == "SHA256")
    except (KeyError, IndexError, TypeError, StopIteration):
        return None
