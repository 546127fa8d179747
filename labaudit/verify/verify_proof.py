"""One trial's tlog-proof to a report: its record is a leaf of the tree that a trusted key signed, and nothing more.

What a proof cannot tell: whether the files that the record lists are what they were. For that, verify the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from labaudit.attest.bundles import parse_bundle
from labaudit.attest.checkpoint import RUN_ORIGIN
from labaudit.attest.keys import PublicKey
from labaudit.attest.log_key import NoteVerifier
from labaudit.attest.proofs import ProofWriter, TrialProof, parse_proof
from labaudit.attest.run_reader import Json
from labaudit.attest.statements import PREDICATE_TYPES, STATEMENT_TYPE
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput
from labaudit.records.schema_registry import fast_validator
from labaudit.verify.bounded_json import parse_bounded
from labaudit.verify.policy_elsewhere import demand
from labaudit.verify.request import Request
from labaudit.verify.seen import compare_heads, parse_seen
from labaudit.verify.signatures import Signature, check_bundle
from labaudit.verify.verdict import Finding, Report, StepResult

_RUN = "run attestation"
_RECORD = "trial record"
_CHECKPOINT = "checkpoint"


def verify_proof(data: bytes, request: Request, *, target: str) -> Report:
    """All checks over one proof file."""
    report = Report(target, "proof", policy={"name": request.policy.name, "sha256": request.policy.sha256})
    try:
        proof = parse_proof(data, where=target)
        bundle = parse_bundle(proof.run_bundle, where=f"{target} run")
        statement: Any = parse_bounded(bundle.envelope.payload, where=f"{target} run statement")
        record: Any = parse_object(proof.record, where=f"{target} trial record")
    except BadInput as error:
        finding = Finding("proof_malformed", target, error.what)
        report.steps.append(StepResult(1, "the proof is well formed", (finding,)))
        return report
    parameters = _parameters(statement)
    signature = check_bundle(bundle, _RUN, request, _own_key(parameters))
    checks = (
        ("the proof is well formed", _shape(data, proof, record)),
        ("the record is a leaf of the tree", _inclusion(proof)),
        ("the checkpoint is the run's", _checkpoint(proof, statement, parameters, record)),
        ("the run attestation is signed by someone trusted", _signed(signature, statement, request)),
        ("the checkpoint that was seen before still holds", _seen(proof, parameters, request)),
    )
    for number, (name, findings) in enumerate(checks, start=1):
        report.steps.append(StepResult(number, name, tuple(findings)))
    _conclude(report, record, statement, signature)
    demand(report, request, {_RUN: bundle}, done=set())
    return report


def _shape(data: bytes, proof: TrialProof, record: Json) -> Iterator[Finding]:
    if not fast_validator("trial_record_v1").is_valid(record):
        yield Finding("record_malformed", _RECORD, "the leaf is no trial record")
    again = ProofWriter(proof.run_bundle, proof.checkpoint.render()).render(proof.record, proof.index, proof.path)
    if again != data:
        yield Finding("proof_malformed", _RECORD, "the proof does not render back to itself")


def _inclusion(proof: TrialProof) -> Iterator[Finding]:
    if not proof.holds:
        yield Finding("proof_mismatch", _RECORD, "the path does not lead from the record to the checkpoint's root")


def _checkpoint(proof: TrialProof, statement: Json, parameters: Json, record: Any) -> Iterator[Finding]:
    key, head = _log_key(parameters), proof.checkpoint
    ids = record.get("ids") if isinstance(record.get("ids"), dict) else {}
    if head.origin != RUN_ORIGIN + str(ids.get("run_id")):
        yield Finding("checkpoint_origin", _CHECKPOINT, f"is of {head.origin[:100]!r}, the record is of another run")
    if record.get("index") != proof.index:
        yield Finding("proof_mismatch", _RECORD, f"the proof is for place {proof.index}, the record names another")
    if parameters.get("run_tree") != {"size": head.size, "root": head.root.hex()}:
        yield Finding("checkpoint_root", _CHECKPOINT, "its tree is not the one in the run attestation")
    if key is None or key.name != head.origin or not head.signed_by(key):
        yield Finding("checkpoint_signature", _CHECKPOINT, "the log key in the run attestation did not sign it")
    if _resolved(statement) != record.get("resolved_digest"):
        yield Finding("record_mismatch", _RECORD, "was made under another plan than the run attestation names")


def _signed(signature: Signature, statement: Json, request: Request) -> Iterator[Finding]:
    yield from signature.findings
    if not request.anchors.given and not request.integrity_only:
        yield Finding("no_trust_anchor", _RUN, "no key and no identity was given to compare the signer with")
    if statement.get("_type") != STATEMENT_TYPE:
        yield Finding("statement_malformed", _RUN, f"is no {STATEMENT_TYPE}")
    if statement.get("predicateType") != PREDICATE_TYPES["run"]:
        yield Finding("predicate_type", _RUN, "is no provenance statement")
    if _subject(statement) is None:
        yield Finding("subject_mismatch", _RUN, "its subject is not one manifest.json")
    policy = request.policy
    if signature.trusted and policy.names_signers and signature.trusted not in policy.allowed_signers:
        yield Finding("signer_not_allowed", _RUN, f"policy {policy.name} does not name {signature.trusted}")


def _seen(proof: TrialProof, parameters: Json, request: Request) -> Iterator[Finding]:
    if request.seen is None:
        return
    seen = parse_seen(request.seen)
    if isinstance(seen, Finding):
        yield seen
        return
    yield from compare_heads(seen, proof.checkpoint, _CHECKPOINT, _log_key(parameters))
    if seen.origin == proof.checkpoint.origin and proof.checkpoint.size > seen.size:
        yield Finding("seen_fork", _CHECKPOINT, "a sealed run does not grow")


def _conclude(report: Report, record: Any, statement: Json, signature: Signature) -> None:
    subject = _subject(statement)
    report.subject_digest = f"sha256:{subject}" if subject else None
    ids = record.get("ids") if isinstance(record.get("ids"), dict) else {}
    report.run_id = str(ids.get("run_id")) if ids.get("run_id") else None
    if signature.trusted:
        report.signers = [signature.trusted]
    if report.findings:
        report.not_established.append("that this trial is part of a run that someone you trust signed")
        if report.verdict != "policy_unmet":
            return
    trial, place = ids.get("trial_id"), record.get("index")
    report.established.append(f"the record of trial {trial} is leaf {place} of its run's tree")
    if signature.trusted and not report.findings:
        report.established.append(f"that tree was signed by {signature.trusted}, whom you trust")
        report.provenance = "signed"
    report.not_established.append("that the trial's files are those that its record lists: verify the run for that")
    report.not_established.append("that the evidence is honest: a signature says who and unchanged")


def _parameters(statement: Any) -> Json:
    try:
        found = statement["predicate"]["buildDefinition"]["internalParameters"]
    except (KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _resolved(statement: Any) -> object:
    try:
        return statement["predicate"]["buildDefinition"]["externalParameters"]["resolved_digest"]
    except (KeyError, TypeError):
        return None


def _subject(statement: Any) -> str | None:
    subject = statement.get("subject")
    if not isinstance(subject, list) or len(subject) != 1 or not isinstance(subject[0], dict):
        return None
    digest = subject[0].get("digest")
    found = digest.get("sha256") if isinstance(digest, dict) else None
    return found if subject[0].get("name") == "manifest.json" and isinstance(found, str) else None


def _own_key(parameters: Json) -> PublicKey | None:
    return PublicKey.from_exact_pem(str(parameters.get("layout_key")))


def _log_key(parameters: Json) -> NoteVerifier | None:
    try:
        return NoteVerifier.parse(str(parameters.get("log_key")))
    except BadInput:
        return None
