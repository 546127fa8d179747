"""Facts of a run to in-toto Statements v1, one builder per kind; each is a pure function, so `verify` builds it again.

The subject is always `manifest.json` alone: tools check a handful of subjects by digest, and our verify expands the
manifest. Numbers that a predicate wants as decimals are text, so that no reader rounds them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from labaudit.attest.run_reader import RECEIPT, Json, RunFacts
from labaudit.attest.summary import GRADE_NAMES
from labaudit.core.canonical import canonical_bytes

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
BUILD_TYPE = "https://agent-lab.local/build-types/experiment-run/v1"
BUILDER_ID = "https://agent-lab.local/labaudit"
PREDICATE_TYPES = {
    "run": "https://slsa.dev/provenance/v1",
    "result": "https://in-toto.io/attestation/test-result/v0.1",
    "grades": "https://in-toto.io/attestation/svr/v0.2",
    "evidence": "https://in-toto.io/attestation/scai/v0.3",
    "eval": "https://agent-lab.local/attestations/eval-result/v1",
    "sbom-cyclonedx": "https://cyclonedx.org/bom",
    "sbom-spdx": "https://spdx.dev/Document/v2.3",
}
SITE_PREDICATE = "https://agent-lab.local/attestations/site/v1"
VSA_PREDICATE = "https://slsa.dev/verification_summary/v1"
SBOM_PATHS = {"sbom-cyclonedx": "sbom/image.cdx.json", "sbom-spdx": "sbom/image.spdx.json"}
ALWAYS = ("run", "result", "grades", "evidence", "eval")
# Above this number of trials a test-result gives counts only; the rows stand in inclusion.json.
LISTED_TRIALS = 1000
OUTCOME_BASIS = "the outcome that each harness reported for itself"
# The lowest step of a scale is no property that holds.
_NO_PROPERTY = {"not_observed", "leaky", "none", "not_comparable"}
_SCALES = {
    "isolation": ("bounded", "sealed"),
    "replay": ("best_effort", "checkpointed", "strict"),
    "interpretability": ("output", "turn", "step"),
    "comparability": ("descriptive", "qualified", "paired"),
    "provenance": ("hashed", "signed", "attested"),
}


@dataclass(frozen=True)
class SigningFacts:
    """What the run statement says about keys: the log's verifier key and the PEM of the layout's key."""

    log_key: str
    layout_key: str
    kinds: tuple[str, ...]


def kinds_of(facts: RunFacts) -> tuple[str, ...]:
    """The kinds that a run gets: always the five, and an SBOM statement per document there is."""
    return ALWAYS + tuple(kind for kind, path in SBOM_PATHS.items() if path in facts.documents)


def statement(kind: str, predicate: Json, manifest_sha256: str) -> bytes:
    """The exact payload of one claim about a run."""
    return statement_about("manifest.json", manifest_sha256, PREDICATE_TYPES[kind], predicate)


def statement_about(name: str, sha256: str, predicate_type: str, predicate: Json) -> bytes:
    """A statement with one subject."""
    return canonical_bytes(
        {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": name, "digest": {"sha256": sha256}}],
            "predicateType": predicate_type,
            "predicate": predicate,
        }
    )


def build_statement(kind: str, facts: RunFacts, signing: SigningFacts) -> bytes:
    """The payload that a run's evidence gives for one kind."""
    if kind == "run":
        return statement(kind, run_predicate(facts, signing), facts.manifest_sha256)
    if kind in SBOM_PATHS:
        return statement(kind, facts.documents[SBOM_PATHS[kind]], facts.manifest_sha256)
    return statement(kind, _BUILDERS[kind](facts), facts.manifest_sha256)


def accepted_statements(kind: str, facts: RunFacts, signing: SigningFacts) -> Iterator[bytes]:
    """Every payload that may stand for this evidence: what is written now, and what version 0.1 wrote at first."""
    yield build_statement(kind, facts, signing)
    if kind == "result":
        yield statement(kind, outcome_result(facts), facts.manifest_sha256)
    if kind == "eval":
        yield statement(kind, _eval_result(facts, _outcome_claims(facts)), facts.manifest_sha256)


def run_predicate(facts: RunFacts, signing: SigningFacts) -> Json:
    """SLSA provenance: what was run, from which inputs, and the keys that the rest of the folder hangs on."""
    runtime = facts.resolved["runtime"]
    metadata: Json = {"invocationId": facts.manifest["run_id"], "finishedOn": facts.manifest["created_at"]}
    if facts.started_at is not None:
        metadata["startedOn"] = facts.started_at
    tool = facts.manifest["tool"]
    return {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {
                "experiment": facts.resolved["experiment"]["id"],
                "resolved_digest": facts.manifest["resolved_digest"],
            },
            "internalParameters": {
                "engine": runtime["engine"]["resolved"],
                "network_mode_requested": runtime["network"]["mode"],
                "sanitization_profile": facts.resolved["design"]["sanitization_profile"],
                "run_tree": facts.manifest["run_tree"],
                "log_key": signing.log_key,
                "layout_key": signing.layout_key,
                "statements": list(signing.kinds),
            },
            "resolvedDependencies": _dependencies(facts),
        },
        "runDetails": {"builder": {"id": BUILDER_ID, "version": {tool["name"]: tool["version"]}}, "metadata": metadata},
    }


def _dependencies(facts: RunFacts) -> list[Json]:
    runtime = facts.resolved["runtime"]
    harness = runtime["harness"]
    found: list[tuple[str, str | None]] = [
        ("resolved_experiment.json", facts.manifest["resolved_digest"]),
        ("dataset", "sha256:" + facts.resolved["dataset"]["sha256"]),
        ("image", runtime["image"]["id"]),
        ("harness-source", harness.get("source_digest")),
        ("harness-exec", harness.get("exec_digest")),
        ("harness-lockfile", harness.get("lockfile_digest")),
    ]
    return [{"name": name, "digest": {"sha256": digest[7:]}} for name, digest in found if digest]


def result_predicate(facts: RunFacts) -> Json:
    """test-result: PASSED only when every scheduled trial succeeded and no primary metric says otherwise.

    Trials are counted from rows, never from a status field. An outcome is the harness's own word, so the statement
    names its basis, and what was measured beside it.
    """
    measured = measured_claims(facts)
    predicate = outcome_result(facts)
    if predicate["result"] == "PASSED" and any(claim["below_best"] for claim in measured):
        predicate["result"] = "WARNED"
    shown = [{key: value for key, value in claim.items() if key != "below_best"} for claim in measured]
    return predicate | {"basis": OUTCOME_BASIS, "measured": shown}


def outcome_result(facts: RunFacts) -> Json:
    """The same by outcomes alone: what version 0.1 signed at first."""
    rows = facts.inclusion["rows"]
    passed = [row["trial_id"] for row in rows if row["status"] == "included" and row["outcome"] == "success"]
    failed = [row["trial_id"] for row in rows if row["status"] == "included" and row["outcome"] != "success"]
    warned = [row["trial_id"] for row in rows if row["status"] != "included"]
    verdict = "FAILED" if failed else "WARNED" if warned or not passed else "PASSED"
    predicate: Json = {
        "result": verdict,
        "configuration": [
            {"name": "resolved_experiment.json", "digest": {"sha256": facts.manifest["resolved_digest"][7:]}},
            {"name": "inclusion.json", "digest": {"sha256": facts.digests["inclusion.json"]}},
        ],
        "counts": {
            "scheduled": len(rows),
            "status": dict(sorted(Counter(row["status"] for row in rows).items())),
            "outcome": dict(sorted(Counter(row["outcome"] or "none" for row in rows).items())),
        },
    }
    if len(rows) <= LISTED_TRIALS:
        predicate |= {"passedTests": passed, "warnedTests": warned, "failedTests": failed}
    return predicate


def grades_predicate(facts: RunFacts) -> Json:
    """Simple Verification Result: the properties that hold, each grade implying the weaker ones of its scale."""
    values = {name: facts.grades[name]["value"] for name in GRADE_NAMES}
    level = facts.grades["integration_level"]["observed"]
    properties = [f"LABAUDIT_INTEGRATION_{level.upper()}"] if level != "not_observed" else []
    for name, value in values.items():
        if value not in _NO_PROPERTY:
            scale = _SCALES[name]
            properties += [f"LABAUDIT_{name}_{step}".upper() for step in scale[: scale.index(value) + 1]]
    return {
        "verifier": {"id": BUILDER_ID, "policies": []},
        "timeCreated": facts.manifest["created_at"],
        "properties": sorted(properties),
        "grades": values | {"integration_level": level},
        "evidence": {"name": "grades.json", "digest": {"sha256": facts.digests["grades.json"]}},
    }


def evidence_predicate(facts: RunFacts) -> Json:
    """SCAI: which sources of evidence there are, and how much of the run each covers."""
    grades_file = {"name": "grades.json", "digest": {"sha256": facts.digests["grades.json"]}}
    attributes: list[Json] = [
        {
            "attribute": "RUN_TREE",
            "conditions": {"size": facts.manifest["run_tree"]["size"]},
            "evidence": {"name": "run-tree", "digest": {"sha256": facts.manifest["run_tree"]["root"]}},
        }
    ]
    for source, coverage in sorted(facts.grades["evidence_sources"].items()):
        if coverage["present"]:
            conditions = {"covered": coverage["covered"], "total": coverage["total"]}
            attributes.append(
                {"attribute": f"EVIDENCE_{source}".upper(), "conditions": conditions, "evidence": grades_file}
            )
    attributes += _contract_attributes(facts)
    attributes += _receipt_attributes(facts)
    return {"attributes": attributes, "producer": {"uri": BUILDER_ID}}


def _contract_attributes(facts: RunFacts) -> list[Json]:
    """Contract records and A2A events by the number of trials that have them, with the limits of what that means."""
    if not facts.contract_files:
        return []
    # The contracts are loaded only for a run that has records of them: verify starts faster without.
    from labaudit.contracts.a2a.meaning import CONTRACT as HANDOFF_CONTRACT
    from labaudit.contracts.a2a.meaning import HANDOFF_MEANINGS
    from labaudit.contracts.frozen import frozen_contracts

    total, attributes = facts.manifest["run_tree"]["size"], []
    for name, contracts in (
        ("run_record.json", ("run_record", "scenario", "rules")),
        ("score_records.jsonl", ("score_record", "rules")),
        ("a2a_events.jsonl", (HANDOFF_CONTRACT,)),
    ):
        covered = facts.contract_files.get(name, 0)
        if not covered:
            continue
        conditions: Json = {"covered": covered, "total": total}
        conditions["contracts"] = [row.as_json() for row in frozen_contracts() if row.name in contracts]
        if name == "a2a_events.jsonl":
            conditions["limits"] = [row.as_json() for row in HANDOFF_MEANINGS]
        attribute = "CONTRACT_" + name.partition(".")[0].upper()
        attributes.append({"attribute": attribute, "target": {"name": f"trials/*/{name}"}, "conditions": conditions})
    return attributes


def _receipt_attributes(facts: RunFacts) -> list[Json]:
    """How many trials a worker signed for; who the workers were, and whom the plan trusts, is in executor.json."""
    covered = facts.contract_files.get(RECEIPT, 0)
    if not covered:
        return []
    attribute: Json = {
        "attribute": "EVIDENCE_WORKER_RECEIPTS",
        "target": {"name": f"trials/*/{RECEIPT}"},
        "conditions": {"covered": covered, "total": facts.manifest["run_tree"]["size"]},
    }
    if "executor.json" in facts.digests:
        attribute["evidence"] = {"name": "executor.json", "digest": {"sha256": facts.digests["executor.json"]}}
    return [attribute]


def eval_predicate(facts: RunFacts) -> Json:
    """Shaped like in-toto's open eval-result proposal: the primary metrics as measured, then outcomes by name."""
    measured = [
        {key: value for key, value in claim.items() if key != "below_best"} for claim in measured_claims(facts)
    ]
    outcomes = [
        claim | {"metric": "outcome_success_rate", "source": OUTCOME_BASIS} for claim in _outcome_claims(facts)
    ]
    return _eval_result(facts, measured + outcomes)


def _eval_result(facts: RunFacts, claims: list[Json]) -> Json:
    """`passed` would need a threshold, so there is none."""
    harness = facts.resolved["runtime"]["harness"]
    included = sum(row["status"] == "included" for row in facts.inclusion["rows"])
    predicate: Json = {
        "verifier": {"id": BUILDER_ID},
        "evaluatedAt": facts.manifest["created_at"],
        "suite": {"name": facts.resolved["experiment"]["id"], "version": facts.manifest["resolved_digest"]},
        "claims": claims,
        "sampleSize": included,
        "commitments": {
            "dataset": {"alg": "sha256", "value": facts.resolved["dataset"]["sha256"], "salted": False},
        },
        "assuranceLevel": "self_attested",
        "subjectProfile": "receipt",
        "preRegistration": {"alg": "sha256", "value": facts.manifest["resolved_digest"][7:]},
        "receipt": {"schema": "labaudit/manifest_v1", "merkleRoot": facts.manifest["run_tree"]["root"]},
        "analysis": {"name": "analysis/summary.json", "digest": {"sha256": facts.digests["analysis/summary.json"]}},
    }
    if harness.get("source_digest"):
        predicate["harness"] = {"name": harness["command"][0], "digest": {"sha256": harness["source_digest"][7:]}}
    return predicate


def _outcome_claims(facts: RunFacts) -> list[Json]:
    included = [row for row in facts.inclusion["rows"] if row["status"] == "included"]
    claims = []
    for variant in facts.resolved["variants"]:
        outcomes = [row["outcome"] for row in included if row["variant_id"] == variant["id"]]
        successes = sum(outcome == "success" for outcome in outcomes)
        claims.append(
            {
                "metric": "success_rate",
                "variant": variant["id"],
                "value": f"{successes / len(outcomes):.6f}" if outcomes else None,
                "successes": successes,
                "sampleSize": len(outcomes),
            }
        )
    return claims


def measured_claims(facts: RunFacts) -> list[Json]:
    """Each primary metric of each variant as `analysis/summary.json` has it, and who measured it.

    A binary metric whose mean is not the best one is `below_best`.
    """
    declared = {metric["name"]: metric for metric in facts.resolved["metrics"]}
    claims = []
    for variant in _objects(facts.summary.get("variants")):
        for metric in _objects(variant.get("metrics")):
            plan, mean = declared.get(str(metric.get("metric"))), metric.get("mean")
            if metric.get("role") != "primary" or plan is None:
                continue
            known = type(mean) in (int, float)
            best = 1 if plan["direction"] == "higher" else 0
            claims.append(
                {
                    "metric": plan["name"],
                    "variant": variant.get("variant_id"),
                    "value": f"{mean:.6f}" if known else None,
                    "sampleSize": metric.get("valid"),
                    "source": plan["source"],
                    "below_best": plan["type"] == "binary" and known and mean != best,
                }
            )
    return claims


def _objects(value: object) -> list[Json]:
    """The objects of a list in a file that may come from a stranger."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


_BUILDERS: dict[str, Callable[[RunFacts], Json]] = {
    "result": result_predicate,
    "grades": grades_predicate,
    "evidence": evidence_predicate,
    "eval": eval_predicate,
}
