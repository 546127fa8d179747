"""Does the run give what the policy demands? It is asked only for what a policy names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from labaudit.records.schema_registry import fast_validator
from labaudit.verify.checks.judged import results_measured_again
from labaudit.verify.grades_check import grades_claim
from labaudit.verify.policy import LEVELS, MEASURED_AGAIN, SCALES, Policy
from labaudit.verify.policy_elsewhere import timestamp_findings
from labaudit.verify.run_view import RunView
from labaudit.verify.signatures import trusted_signers
from labaudit.verify.verdict import Finding


def policy_is_met(view: RunView) -> Iterator[Finding]:
    """Every demand of the policy, each with its own reason code."""
    policy = view.request.policy
    yield from _kinds(view, policy)
    yield from _signers(view, policy)
    yield from _grades(view, policy)
    yield from _recomputed(view, policy)
    yield from _lost(view, policy)
    yield from _timestamps(view)


def _kinds(view: RunView, policy: Policy) -> Iterator[Finding]:
    if not view.signed:
        return  # `unsigned` says it already
    for kind in policy.kinds:
        if kind not in view.kinds:
            path = f"attestations/{kind}.sigstore.json"
            yield Finding("kind_absent", path, f"policy {policy.name} demands a {kind} attestation")
    if policy.sbom_required and not any(kind.startswith("sbom-") for kind in view.kinds):
        yield Finding("sbom_absent", "sbom", f"policy {policy.name} demands an SBOM of the image")


def _signers(view: RunView, policy: Policy) -> Iterator[Finding]:
    if not policy.names_signers:
        return
    allowed = policy.allowed_signers
    for kind, signer in trusted_signers(view).items():
        if signer not in allowed:
            path = f"attestations/{kind}.sigstore.json"
            yield Finding("signer_not_allowed", path, f"policy {policy.name} does not name {signer}")


def _grades(view: RunView, policy: Policy) -> Iterator[Finding]:
    grades: Any = view.document("grades.json")
    if grades is None or not fast_validator("grades_v1").is_valid(grades):
        return
    for name, minimum in policy.minimum_grades:
        value, scale = grades[name]["value"], SCALES[name]
        if name == "provenance":
            continue  # what was established by this verification; see verify_run
        if scale.index(value) < scale.index(minimum):
            yield Finding("grade_too_low", "grades.json", f"{name} is {value}, policy {policy.name} asks for {minimum}")
    observed = grades["integration_level"]["observed"]
    if policy.minimum_level is not None and LEVELS[observed] < LEVELS[policy.minimum_level]:
        what = f"the observed level is {observed}, policy {policy.name} asks for {policy.minimum_level}"
        yield Finding("level_too_low", "grades.json", what)
    if MEASURED_AGAIN in policy.refuse_caveats:
        for path in results_measured_again(view):
            what = f"{MEASURED_AGAIN}: this attempt had a result, and another one counts"
            yield Finding("caveat_refused", path, what)
    for caveat in grades["caveats"]:
        if caveat["id"] in policy.refuse_caveats:
            yield Finding("caveat_refused", "grades.json", f"{caveat['id']}: {caveat['sentence']}")


def _recomputed(view: RunView, policy: Policy) -> Iterator[Finding]:
    done = {"analysis", "trials_table"} if view.request.recompute_analysis is not None else set()
    if grades_claim(view) != "not_recomputed":
        done.add("grades")
    for claim in policy.recomputed:
        if claim not in done:
            yield Finding("not_recomputed", claim, f"policy {policy.name} demands that {claim} be recomputed")


def _lost(view: RunView, policy: Policy) -> Iterator[Finding]:
    inclusion: Any = view.document("inclusion.json")
    if policy.max_lost_fraction is None or inclusion is None or not fast_validator("inclusion_v1").is_valid(inclusion):
        return
    rows = inclusion["rows"]
    lost = sum(row["status"] == "lost" for row in rows)
    if lost > policy.max_lost_fraction * len(rows):
        what = f"{lost} of {len(rows)} trials are lost, policy {policy.name} allows {policy.max_lost_fraction:.0%}"
        yield Finding("trials_lost", "inclusion.json", what)


def _timestamps(view: RunView) -> Iterator[Finding]:
    for kind in view.kinds:
        bundle = view.bundle(kind)
        if not isinstance(bundle, Finding):
            yield from timestamp_findings(view.request, f"attestations/{kind}.sigstore.json", bundle)
