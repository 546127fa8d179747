"""Does each signed statement say exactly what the evidence gives?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from labaudit.attest.checkpoint import RUN_ORIGIN
from labaudit.attest.run_reader import Json, redaction_mode
from labaudit.attest.statements import (
    PREDICATE_TYPES,
    STATEMENT_TYPE,
    SigningFacts,
    accepted_statements,
    kinds_of,
)
from labaudit.attest.summary import SummaryInputs, build_summary
from labaudit.core.canonical import canonical_bytes
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput
from labaudit.verify.bounded_json import parse_bounded
from labaudit.verify.checks.paths import layout_key
from labaudit.verify.checks.tree import log_key
from labaudit.verify.run_view import MAX_LINE, RunView
from labaudit.verify.sources import CannotRead
from labaudit.verify.verdict import Finding


def statements_are_about_this_run(view: RunView) -> Iterator[Finding]:
    """The predicate type fits the kind, and the one subject is this manifest."""
    subjects = []
    for kind in view.kinds:
        found = view.bundle(kind)
        if isinstance(found, Finding):
            continue
        path = f"attestations/{kind}.sigstore.json"
        try:
            statement = parse_bounded(found.envelope.payload, where=path)
        except BadInput as error:
            yield Finding("statement_malformed", path, error.what)
            continue
        subjects.append(canonical_bytes(statement.get("subject")))
        yield from _about(path, kind, statement, view.manifest_sha256)
    agreed = len(subjects) > 1 and len(set(subjects)) == 1 and view.manifest_sha256 is not None
    if agreed and subjects[0] != canonical_bytes(_subject(str(view.manifest_sha256))):
        yield Finding("digest_mismatch", "manifest.json", "all statements are about another manifest.json")


def _about(path: str, kind: str, statement: Json, manifest_sha256: str | None) -> Iterator[Finding]:
    if statement.get("_type") != STATEMENT_TYPE:
        yield Finding("statement_malformed", path, f"is no {STATEMENT_TYPE}")
    if statement.get("predicateType") != PREDICATE_TYPES[kind]:
        yield Finding("predicate_type", path, f"has predicate type {str(statement.get('predicateType'))[:100]!r}")
    if manifest_sha256 is None:
        return
    if statement.get("subject") != _subject(manifest_sha256):
        yield Finding("subject_mismatch", path, "its subject is not this run's manifest.json, alone")


def _subject(manifest_sha256: str) -> list[Json]:
    return [{"name": "manifest.json", "digest": {"sha256": manifest_sha256}}]


def statements_follow_from_the_evidence(view: RunView) -> Iterator[Finding]:
    """Every payload is, byte for byte, what the builders give for this run."""
    yield from _keys_of_the_run(view)
    facts, parameters = view.facts, view.run_parameters
    if facts is None or parameters is None:
        return
    signing = SigningFacts(str(parameters["log_key"]), str(parameters["layout_key"]), kinds_of(facts))
    for kind in view.kinds:
        found = view.bundle(kind)
        if isinstance(found, Finding) or kind not in signing.kinds:
            continue
        if found.envelope.payload not in accepted_statements(kind, facts, signing):
            path = f"attestations/{kind}.sigstore.json"
            yield Finding("statement_mismatch", path, "its claim is not what the evidence of this run gives")


def _keys_of_the_run(view: RunView) -> Iterator[Finding]:
    """The run statement names the log's key and the layout's: without them nothing would check checkpoint and links."""
    bundle, path = view.bundle("run"), "attestations/run.sigstore.json"
    if isinstance(bundle, Finding) or view.statement("run") is None:
        return  # said where bundles and statements are read
    if view.run_parameters is None:
        yield Finding("statement_mismatch", path, "names no log key, layout key and list of statements")
        return
    log, layout = log_key(view), layout_key(view)
    if log is None or (view.manifest is not None and log.name != RUN_ORIGIN + str(view.run_id)):
        yield Finding("statement_mismatch", path, "its log key is none, or another run's")
    if layout is None:
        yield Finding("statement_mismatch", path, "its layout key is no P-256 key in PEM")
    elif not bundle.keyless and not layout.verifies(bundle.envelope.signature, bundle.envelope.signed_bytes):
        # One key signs envelopes, layout and links; a second one would be vouched for by nobody but itself.
        yield Finding("statement_mismatch", path, "its layout key is not the key that signed it")


def summary_follows_from_the_evidence(view: RunView) -> Iterator[Finding]:
    """attestation.json, but for the reasons it gives for missing SBOMs, can be built again."""
    facts, totals, stored = view.facts, view.totals, view.document("attestation.json")
    if facts is None or totals is None or stored is None or "attestation.json" not in view.listed:
        return
    path = "attestation.json"
    listed = {bytes.fromhex(name[17:]) for name in view.listed if _is_object(name)}
    counts = _redactions(view, totals.artifacts | listed)
    sbom = stored.get("sbom")
    if counts is None or not isinstance(sbom, dict):
        return
    inputs = SummaryInputs(
        run_id=facts.manifest["run_id"],
        created_at=facts.manifest["created_at"],
        tool=facts.manifest["tool"],
        resolved=facts.resolved,
        resolved_digest=facts.manifest["resolved_digest"],
        grades=facts.grades,
        sbom_documents=sbom.get("documents", []),
        sbom_missing=sbom.get("missing", []),
        artifacts=list(totals.artifacts | listed),
        redaction_counts=counts,
    )
    expected = build_summary(inputs, totals) | ({"ext": stored["ext"]} if "ext" in stored else {})
    if canonical_bytes(stored) != canonical_bytes(expected):
        keys = sorted(key for key in expected.keys() | stored.keys() if expected.get(key) != stored.get(key))
        yield Finding("summary_mismatch", path, f"{', '.join(keys)} is not what the evidence gives")
    yield from _sbom_documents(view, sbom)


def _sbom_documents(view: RunView, sbom: Json) -> Iterator[Finding]:
    named = {item["path"]: item["sha256"] for item in sbom.get("documents", [])}
    there = {path: entry["sha256"] for path, entry in view.listed.items() if path.startswith("sbom/")}
    if named != there:
        yield Finding("summary_mismatch", "attestation.json", "its SBOM documents are not those under sbom/")


def _is_object(path: str) -> bool:
    return path.startswith("artifacts/sha256/") and len(path) == 81 and not path[17:].strip("0123456789abcdef")


def _redactions(view: RunView, artifacts: set[bytes]) -> dict[str, int] | None:
    counts: Counter[str] = Counter()
    for digest in artifacts:
        try:
            data = view.source.read(f"artifacts/meta/{digest.hex()}.json", MAX_LINE)
            counts[redaction_mode(parse_object(data))] += 1
        except (CannotRead, BadInput):
            return None
    return dict(sorted(counts.items()))
