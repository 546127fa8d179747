"""A published site to a report: every file is the one that index.json lists, and a trusted key signed index.json.

With `--rebuild RUN` the caller brings a function that renders the pages again; without it the pages are known to be
unchanged since signing, not to follow from the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from labaudit.attest.bundles import MAX_BUNDLE, Bundle, parse_bundle
from labaudit.attest.derived_files import sum_line
from labaudit.attest.run_reader import Json
from labaudit.attest.site_statement import SITE_BUNDLE, SUBJECT
from labaudit.attest.statements import SITE_PREDICATE, STATEMENT_TYPE
from labaudit.core.digest import sha256_hex
from labaudit.errors import BadInput
from labaudit.verify.bounded_json import parse_bounded
from labaudit.verify.checks.paths import is_safe_path, plain_files
from labaudit.verify.policy_elsewhere import demand
from labaudit.verify.published_log import PREFIX, log_holds
from labaudit.verify.request import Request
from labaudit.verify.run_view import MAX_DOCUMENT, is_hex
from labaudit.verify.signatures import Signature, check_bundle
from labaudit.verify.sources import CannotRead, Source
from labaudit.verify.verdict import Finding, Report, StepResult, bounded

_SUMS = "SHA256SUMS"
_CHECKPOINT = "files/attestations/checkpoint"


def verify_site(source: Source, request: Request, *, target: str) -> Report:
    """All checks over one site."""
    report = Report(target, "site", policy={"name": request.policy.name, "sha256": request.policy.sha256})
    index_bytes, index, bundle = _read(source, report)
    listed = _listed(index)
    signature, statement = _signature(bundle, request)
    checks = (
        ("every file is listed, and plain", _nothing_extra(source, listed, index is not None)),
        ("files have their digests", _digests(source, listed)),
        ("SHA256SUMS lists every file", _sums(source, listed, index_bytes)),
        ("the site is signed by someone trusted", _signed(bundle, signature, statement, index_bytes, request)),
        ("the publication log holds", _log(source, listed, statement, request)),
        ("the pages follow from the run", request.rebuild(source.root) if request.rebuild else ()),
        ("the statement names the runs of the index", _runs(index, statement)),
    )
    for name, findings in checks:
        number = len(report.steps) + 1
        skipped = "not asked for (--rebuild RUN)" if number == 7 and request.rebuild is None else ""
        report.steps.append(StepResult(number, name, bounded(findings), skipped))
    odd = bounded(source.odd.values())
    report.steps.insert(0, StepResult(0, "no file has an execute bit or a name that cannot be written", odd))
    if index_bytes is not None:
        report.subject_digest = f"sha256:{sha256_hex(index_bytes)}"
    _conclude(report, signature, request)
    demand(report, request, {SITE_BUNDLE: bundle}, done={"site"} if request.rebuild is not None else set())
    return report


def _read(source: Source, report: Report) -> tuple[bytes | None, Json | None, Bundle | Finding | None]:
    findings: list[Finding] = []
    data: bytes | None = None
    index: Json | None = None
    try:
        data = source.read(SUBJECT, MAX_DOCUMENT)
        index = parse_bounded(data, where=SUBJECT)
        if not isinstance(index.get("files"), list):
            findings.append(Finding("document_malformed", SUBJECT, "lists no files"))
            index = None
        else:
            findings += _repeated(index["files"])
    except CannotRead as error:
        findings.append(error.finding)
    except BadInput as error:
        findings.append(Finding("document_malformed", SUBJECT, error.what))
    report.steps.append(StepResult(1, "index.json is well formed", tuple(findings)))
    return data, index, _bundle(source)


def _repeated(files: list[Any]) -> list[Finding]:
    paths = [item.get("path") if isinstance(item, dict) else None for item in files]
    if not all(isinstance(path, str) for path in paths):
        return [Finding("document_malformed", SUBJECT, "a row of its files names no path")]
    twice = [path for path, times in Counter(paths).items() if times > 1]
    return [Finding("path_duplicate", str(path), "is listed twice in index.json") for path in twice[:20]]


def _bundle(source: Source) -> Bundle | Finding | None:
    try:
        return parse_bundle(source.read(SITE_BUNDLE, MAX_BUNDLE), where=SITE_BUNDLE)
    except CannotRead as error:
        return None if error.finding.code == "file_missing" else error.finding
    except BadInput as error:
        return Finding("bundle_malformed", SITE_BUNDLE, error.what)


def _listed(index: Json | None) -> dict[str, Json]:
    found = {}
    for item in (index or {}).get("files", []):
        if isinstance(item, dict) and isinstance(item.get("path"), str):
            found[item["path"]] = item
    return found


def _nothing_extra(source: Source, listed: dict[str, Json], known: bool) -> Iterator[Finding]:
    for found in plain_files(source, "site"):
        if isinstance(found, Finding):
            yield found
        elif known and found not in listed and not _outside_the_index(found):
            yield Finding("extra_file", found, "index.json does not list it")


def _outside_the_index(path: str) -> bool:
    return path in {SUBJECT, _SUMS, SITE_BUNDLE} or path.startswith(PREFIX)


def _digests(source: Source, listed: dict[str, Json]) -> Iterator[Finding]:
    for path, item in listed.items():
        sha256, size = item.get("sha256"), item.get("size")
        if not is_safe_path(path):
            yield Finding("path_unsafe", SUBJECT, f"lists {path[:200]!r}, which is no plain path inside")
        elif not isinstance(sha256, str) or not is_hex(sha256) or type(size) is not int:
            yield Finding("document_malformed", SUBJECT, f"gives no digest and size for {path}")
        else:
            try:
                found, length = source.hash(path, size)
            except CannotRead as error:
                yield error.finding
                continue
            if found != sha256 or length != size:
                yield Finding("site_mismatch", path, f"is not the file with sha256 {sha256[:16]}... that was signed")


def _sums(source: Source, listed: dict[str, Json], index: bytes | None) -> Iterator[Finding]:
    """The lines of SHA256SUMS, in any order, are those of index.json and index.json itself: no more, no fewer."""
    if index is None:
        return
    try:
        lines = source.read(_SUMS, MAX_DOCUMENT).split(b"\n")
    except CannotRead as error:
        yield error.finding
        return
    digests = {path: str(item.get("sha256")) for path, item in listed.items()} | {SUBJECT: sha256_hex(index)}
    expected = {sum_line(sha256, path)[:-1] for path, sha256 in digests.items()}
    for number, line in enumerate(lines[:-1], start=1):
        if line not in expected:
            yield Finding("copy_differs", f"{_SUMS}:{number}", "is no line of a file of this site, or stands twice")
            return
        expected.remove(line)
    if lines[-1] or expected:
        missing = min(expected, default=b"").decode()[66:266]
        yield Finding("copy_differs", _SUMS, f"has no line for {missing}" if missing else "does not end with a line")


def _signature(bundle: Bundle | Finding | None, request: Request) -> tuple[Signature | None, Json]:
    if bundle is None or isinstance(bundle, Finding):
        return None, {}
    try:
        statement: Json = parse_bounded(bundle.envelope.payload, where=SITE_BUNDLE)
    except BadInput:
        statement = {}
    return check_bundle(bundle, SITE_BUNDLE, request, None), statement


def _signed(
    bundle: Bundle | Finding | None,
    signature: Signature | None,
    statement: Json,
    index: bytes | None,
    request: Request,
) -> Iterator[Finding]:
    if bundle is None or isinstance(bundle, Finding) or signature is None:
        if isinstance(bundle, Finding):
            yield bundle
        elif not request.integrity_only:
            yield Finding("unsigned", SITE_BUNDLE, "the site is not signed")
        return
    yield from signature.findings
    if not request.anchors.given and not request.integrity_only:
        yield Finding("no_trust_anchor", SITE_BUNDLE, "no key and no identity was given to compare the signer with")
    if statement.get("_type") != STATEMENT_TYPE:
        yield Finding("statement_malformed", SITE_BUNDLE, f"is no {STATEMENT_TYPE}")
    if statement.get("predicateType") != SITE_PREDICATE:
        yield Finding("predicate_type", SITE_BUNDLE, "is no site statement")
    if index is not None and statement.get("subject") != [{"name": SUBJECT, "digest": {"sha256": sha256_hex(index)}}]:
        yield Finding("subject_mismatch", SITE_BUNDLE, "its subject is not this index.json")
    policy = request.policy
    if signature.trusted and policy.names_signers and signature.trusted not in policy.allowed_signers:
        yield Finding("signer_not_allowed", SITE_BUNDLE, f"policy {policy.name} does not name {signature.trusted}")


def _log(source: Source, listed: dict[str, Json], statement: Json, request: Request) -> Iterator[Finding]:
    published = [path for path in listed if path.endswith(_CHECKPOINT) and is_safe_path(path)]
    yield from log_holds(source, _log_key(statement), request.seen, signed=bool(statement), published=published)


def _runs(index: Json | None, statement: Any) -> Iterator[Finding]:
    predicate = statement.get("predicate")
    rows = index.get("runs") if index is not None else None
    if not isinstance(rows, list) or not isinstance(predicate, dict):
        return
    shown = [(row.get("run_id"), row.get("manifest_sha256")) for row in rows if isinstance(row, dict)]
    named = [{"run_id": run_id, "digest": {"sha256": sha256}} for run_id, sha256 in shown]
    if predicate.get("runs") != named:
        yield Finding("statement_mismatch", SITE_BUNDLE, "it names other runs than index.json shows")


def _log_key(statement: Any) -> str | None:
    predicate = statement.get("predicate")
    key = predicate.get("log_key") if isinstance(predicate, dict) else None
    return key if isinstance(key, str) else None


def _conclude(report: Report, signature: Signature | None, request: Request) -> None:
    report.claims = {"site": "not_recomputed" if request.rebuild is None else "recomputed"}
    if signature is not None and signature.trusted:
        report.signers = [signature.trusted]
    if report.found_in(7):
        report.claims["site"] = "mismatch"
    failed = [step for step in report.steps if step.findings and step.number not in (5,)]
    if not failed:
        report.established.append("every file of the site is the one that its index lists")
        report.provenance = "hashed"
    if signature is not None and signature.trusted and not report.findings:
        report.established.append(f"the index was signed by {signature.trusted}, whom you trust")
        report.provenance = "signed"
    elif not (signature is not None and signature.trusted):
        report.not_established.append("who published the site: no signer that you trust was found")
    if report.claims["site"] == "recomputed":
        report.established.append("the pages are, byte for byte, those that the run gives")
    elif request.rebuild is None:
        report.not_established.append("that the pages follow from the run: --rebuild RUN renders them again")
    report.not_established.append("that the run behind the pages verifies: verify the run itself")
