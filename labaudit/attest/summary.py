"""A finished run to `attestation.json`, the summary that people read (attestation_v1, seed 001 phase 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labaudit import __version__
from labaudit.attest.run_reader import Json, TrialTotals, artifact_store_root
from labaudit.core.digest import Digest

TOOL = {"name": "labaudit", "version": __version__}
GRADE_NAMES = ("isolation", "replay", "interpretability", "comparability", "provenance")
_HARNESS_KEYS = ("source_digest", "exec_digest", "runtime_fingerprint", "lockfile_digest")


@dataclass(frozen=True)
class SummaryInputs:
    """What the summary is made of besides the trials; `artifacts` are the digests of all stored objects."""

    run_id: str
    created_at: str
    tool: Json
    resolved: Json
    resolved_digest: str
    grades: Json
    sbom_documents: Sequence[Json]
    sbom_missing: Sequence[Json]
    artifacts: Sequence[bytes]
    redaction_counts: dict[str, int]


def build_summary(inputs: SummaryInputs, totals: TrialTotals) -> Json:
    """The content of attestation.json."""
    runtime = inputs.resolved["runtime"]
    counts = inputs.redaction_counts
    grades = {name: inputs.grades[name]["value"] for name in GRADE_NAMES}
    grades["integration_level"] = inputs.grades["integration_level"]["observed"]
    return {
        "schema_version": "attestation_v1",
        "run_id": inputs.run_id,
        "created_at": inputs.created_at,
        "tool": inputs.tool,
        "resolved_digest": inputs.resolved_digest,
        "image_digest": runtime["image"]["id"],
        "run_tree": totals.tree,
        "hashchain_heads": totals.heads,
        "artifact_store": artifact_store_root(inputs.artifacts),
        "harness": _harness(runtime["harness"]),
        "hooks_schema_version": "hook_events_v1" if totals.has_hooks else None,
        "tracing": {"mode": runtime["harness"]["tracing"]["mode"]},
        "redaction": {
            "rules": inputs.resolved["redaction"]["rules"],
            "summary_digest": Digest.of_json(counts),
            "counts": counts,
        },
        "grades": grades,
        "sbom": {
            "mode": inputs.resolved["provenance"]["sbom"],
            "documents": list(inputs.sbom_documents),
            "missing": list(inputs.sbom_missing),
        },
    }


def sbom_document(path: str, sha256: str, *, origin: str = "generated") -> Json:
    """One entry of `sbom.documents`."""
    return {
        "path": path,
        "format": "spdx" if path.endswith(".spdx.json") else "cyclonedx",
        "sha256": sha256,
        "origin": origin,
    }


def _harness(harness: Json) -> Json:
    identity: Json = {key: harness.get(key) for key in _HARNESS_KEYS}
    identity["name"] = harness.get("name")
    identity["entry_command"] = harness["command"]
    if "source_provenance" in harness:
        identity["source_provenance"] = harness["source_provenance"]
    return identity
