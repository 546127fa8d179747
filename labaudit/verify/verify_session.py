"""A recorded session's folder to a report: files, event chain, artifacts and the signed statement.

A session has no plan and no grades. What is established is that the record is whole and who sealed it, not who talked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from labaudit.attest.bundles import Bundle, parse_bundle
from labaudit.attest.run_reader import Json
from labaudit.attest.session_seal import SESSION_PREDICATE, session_statement
from labaudit.attest.statements import STATEMENT_TYPE
from labaudit.core import hashchain
from labaudit.core.canonical import canonical_bytes
from labaudit.core.merkle import tree_root
from labaudit.errors import BadInput
from labaudit.records.schema_registry import fast_validator
from labaudit.store.session_folder import log_identity
from labaudit.verify.bounded_json import parse_bounded
from labaudit.verify.checks.events import LogReader
from labaudit.verify.checks.manifest import listed_digests, manifest_is_well_formed
from labaudit.verify.checks.paths import plain_files
from labaudit.verify.policy_elsewhere import demand
from labaudit.verify.request import Request
from labaudit.verify.run_view import MAX_BUNDLE, MAX_LINE, RunView
from labaudit.verify.signatures import Signature, check_bundle
from labaudit.verify.sources import CannotRead, Source
from labaudit.verify.verdict import Finding, Report, StepResult, bounded

BUNDLE = "attestations/session.sigstore.json"
_REQUIRED = ("session.json", "events.jsonl", "events.head")


def verify_session(source: Source, request: Request, *, target: str) -> Report:
    """All checks over one recorded session."""
    view = RunView(source, request)
    report = Report(target, "session", run_id=view.run_id)
    report.policy = {"name": request.policy.name, "sha256": request.policy.sha256}
    bundle = _bundle(view)
    signature = check_bundle(bundle, BUNDLE, request, None) if isinstance(bundle, Bundle) else None
    checks = (
        ("the manifest is well formed", manifest_is_well_formed(view)),
        ("every path is a plain file that the manifest lists", _paths(view)),
        ("files have their digests", _digests(view)),
        ("the session is the one that the manifest names", _session(view)),
        ("the event chain, tree and head hold", _events(view)),
        ("artifacts are what their names say", _artifacts(view)),
        ("the session is signed by someone trusted", _signed(view, bundle, signature)),
    )
    for number, (name, findings) in enumerate(checks, start=1):
        report.steps.append(StepResult(number, name, bounded(findings)))
    odd = bounded(source.odd.values())
    report.steps.insert(0, StepResult(0, "no file has an execute bit or a name that cannot be written", odd))
    if view.manifest_sha256 is not None:
        report.subject_digest = f"sha256:{view.manifest_sha256}"
    _conclude(report, signature)
    demand(report, request, {BUNDLE: bundle}, done=set())
    return report


def _bundle(view: RunView) -> Bundle | Finding | None:
    try:
        return parse_bundle(view.source.read(BUNDLE, MAX_BUNDLE), where=BUNDLE)
    except CannotRead as error:
        return None if error.finding.code == "file_missing" else error.finding
    except BadInput as error:
        return Finding("bundle_malformed", BUNDLE, error.what)


def _paths(view: RunView) -> Iterator[Finding]:
    known = {*view.listed, "manifest.json", BUNDLE}
    for found in plain_files(view.source, "session"):
        if isinstance(found, Finding):
            yield found
        elif view.manifest is not None and found not in known:
            yield Finding("extra_file", found, "nothing accounts for this file")


def _digests(view: RunView) -> Iterator[Finding]:
    yield from listed_digests(view, _REQUIRED, "session")


def _session(view: RunView) -> Iterator[Finding]:
    problem, session = view.document_problem("session.json"), view.document("session.json")
    if problem is not None and problem.code == "document_malformed":
        yield problem
    if session is None or view.manifest is None:
        return
    if not fast_validator("session_v1").is_valid(session):
        yield Finding("document_malformed", "session.json", "is no session_v1 document")
        return
    if session["session_id"] != view.run_id:
        yield Finding("record_mismatch", "session.json", "is not the session that the manifest names")
    if view.manifest["resolved_digest"] != f"sha256:{_sha256(view, 'session.json')}":
        yield Finding("resolved_digest_mismatch", "session.json", "does not have the digest that the manifest names")


def _events(view: RunView) -> Iterator[Finding]:
    session: Any = view.document("session.json")
    if view.manifest is None or session is None or not fast_validator("session_v1").is_valid(session):
        return  # a record without its manifest is not sealed: its log has no end yet, which is no contradiction
    digest = f"sha256:{_sha256(view, 'session.json')}"
    identity = log_identity(session["session_id"], session["kind"], digest)
    payloads = {f"artifact://{path[10:]}" for path in view.listed if path.startswith("artifacts/sha256/")}
    reader = LogReader("events.jsonl", identity.ids, identity.attempt, digest, payloads)
    try:
        with view.source.open("events.jsonl") as stream:
            finding = reader.read(stream)
        if finding is not None:
            yield finding
            return
        expected = {
            "domain": hashchain.EVENTS_DOMAIN,
            "run_id": identity.run_id,
            "trial_id": identity.trial_id,
            "attempt": identity.attempt,
            "resolved_digest": digest,
            "sha256": _sha256(view, "events.jsonl"),
            **reader.totals(),
        }
        head = view.source.read("events.head", MAX_LINE)
    except CannotRead:
        return  # the step that hashes files names it
    if head != canonical_bytes(expected):
        yield Finding("events_head_mismatch", "events.head", "is not the head that the log gives")
    if view.manifest is not None and view.manifest["run_tree"] != {"size": 1, "root": tree_root([head]).hex()}:
        yield Finding("run_tree_mismatch", "manifest.json", "its tree is not the one over events.head")


def _artifacts(view: RunView) -> Iterator[Finding]:
    for path, entry in view.listed.items():
        if path.startswith("artifacts/sha256/") and path[17:] != entry["sha256"]:
            yield Finding("artifact_misnamed", path, "the manifest gives this object another hash than its name")


def _signed(view: RunView, bundle: Bundle | Finding | None, signature: Signature | None) -> Iterator[Finding]:
    request = view.request
    if isinstance(bundle, Finding):
        yield bundle
    elif bundle is None or signature is None:
        if not request.integrity_only:
            yield Finding("unsigned", BUNDLE, "the session is not signed")
    else:
        yield from signature.findings
        yield from _trust(request, signature)
        yield from _statement(view, bundle)


def _trust(request: Request, signature: Signature) -> Iterator[Finding]:
    if request.integrity_only:
        return
    if not request.anchors.given:
        yield Finding("no_trust_anchor", BUNDLE, "no key and no identity was given to compare the signer with")
    elif signature.trusted and request.policy.names_signers and signature.trusted not in request.policy.allowed_signers:
        yield Finding("signer_not_allowed", BUNDLE, f"policy {request.policy.name} does not name the signer")


def _statement(view: RunView, bundle: Bundle) -> Iterator[Finding]:
    try:
        statement: Json = parse_bounded(bundle.envelope.payload, where=BUNDLE)
    except BadInput as error:
        yield Finding("statement_malformed", BUNDLE, error.what)
        return
    if statement.get("_type") != STATEMENT_TYPE:
        yield Finding("statement_malformed", BUNDLE, f"is no {STATEMENT_TYPE}")
    if statement.get("predicateType") != SESSION_PREDICATE:
        yield Finding("predicate_type", BUNDLE, "is no session statement")
    if statement.get("subject") != [{"name": "manifest.json", "digest": {"sha256": view.manifest_sha256}}]:
        yield Finding("subject_mismatch", BUNDLE, "its subject is not this session's manifest.json, alone")
    session, head = view.document("session.json"), view.document("events.head")
    shapes = (("session_v1", session), ("events_head_v1", head))
    if session is None or head is None or not all(fast_validator(name).is_valid(value) for name, value in shapes):
        return
    if bundle.envelope.payload != session_statement(session, head, str(view.manifest_sha256)):
        yield Finding("statement_mismatch", BUNDLE, "its claim is not what the recorded session gives")


def _sha256(view: RunView, path: str) -> str:
    try:
        return view.source.hash(path)[0]
    except CannotRead:
        return ""


def _conclude(report: Report, signature: Signature | None) -> None:
    if not any(report.found_in(number) for number in range(7)):
        report.established.append("every byte of the session's record is as it was sealed")
        report.provenance = "hashed"
    trusted = signature.trusted if signature is not None else None
    if trusted:
        report.signers = [trusted]
    if trusted and not report.findings:
        report.established.append(f"signed by {trusted}, whom you trust")
        report.provenance = "signed"
    else:
        report.not_established.append("who recorded the session: no signer that you trust was found")
    report.not_established.append("who talked, or that the record is honest: a signature says who and unchanged")
