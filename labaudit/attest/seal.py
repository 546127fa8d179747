"""A complete run folder to a sealed one: summary, manifest, checkpoint, proofs, statements, links, in this order.

Each part refers only to what was written before it. What a runner calls, in this order:

    keys = trust_store.ensure_keys(lab)                     once; `keys.made_now` is what to tell the user
    sign_resolve_link(run, keys.signing)                    after resolved_experiment.json and the registry line, before
                                                            the first trial: the plan is signed, results are unknown
    ... trials, artifacts.jsonl, inclusion.json, analysis/, grades.json ...
    report = sbom.SbomReport()                              `provenance.sbom: off` leaves these three out
    sbom.describe_image(report, run.sbom, ...)              writes sbom/; report.missing says what is not there and why
    sbom.describe_harness(report, run.sbom, ...)            `required`: report.insist() makes the run invalid
    seal_run(run, KeySigner(keys.signing), clock=clock,     writes attestation.json, manifest.json, and then everything
             log_key=keys.log,                              under attestations/; `signer=None` seals without signing
             sbom_missing=report.missing)
    publication_log.append_run(lab, run, keys.log)          when the run is published (`labaudit site`); idempotent

An unsigned run (`--no-sign`) skips the link and the log. After `seal_run` nothing in the folder is ever written again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from labaudit.attest import layout as intoto
from labaudit.attest.checkpoint import RUN_ORIGIN, sign_checkpoint
from labaudit.attest.derived_files import envelopes_file, sums_of_run, trusted_root_bytes
from labaudit.attest.keys import PrivateKey
from labaudit.attest.log_key import LogKey
from labaudit.attest.manifest import build_manifest
from labaudit.attest.proofs import ProofWriter
from labaudit.attest.run_reader import (
    Json,
    RunFacts,
    TrialTotals,
    read_document,
    read_totals,
    redaction_mode,
    scheduled_trials,
)
from labaudit.attest.signers import KeySigner, Signer
from labaudit.attest.statements import SBOM_PATHS, SigningFacts, build_statement, kinds_of
from labaudit.attest.summary import TOOL, SummaryInputs, build_summary, sbom_document
from labaudit.core.clock import Clock, rfc3339
from labaudit.core.digest import hash_file, hex_of_reference, sha256_hex
from labaudit.core.merkle import ProofTree
from labaudit.errors import BadInput
from labaudit.store import atomic
from labaudit.store.run_folder import RunFolder


@dataclass(frozen=True)
class Sealed:
    """What sealing made; `signer` is None for a run that nobody signed."""

    run_id: str
    manifest_digest: str
    signer: str | None
    kinds: tuple[str, ...]


def sign_resolve_link(run: RunFolder, key: PrivateKey) -> None:
    """Signs the plan before the first trial."""
    step = intoto.STEPS[0]
    digests = {path: hash_file(run.path / path)[0] for path in step.products}
    target = run.attestations / intoto.link_name(step.name, key.public)
    atomic.write_bytes(target, intoto.sign_payload(intoto.link_payload(step, digests), key))


def seal_run(
    run: RunFolder,
    signer: Signer | None,
    *,
    clock: Clock,
    log_key: LogKey | None = None,
    layout_key: PrivateKey | None = None,
    sbom_missing: Sequence[Json] = (),
    supplied_sboms: Sequence[Json] = (),
) -> Sealed:
    """Seals and, with a signer, signs a run whose trials, inclusion, analysis, grades and SBOMs are in place.

    With a KeySigner the layout key is the signer's own; a keyless signer needs a local one for layout and links.
    """
    write_manifest(run, clock=clock, sbom_missing=sbom_missing, supplied_sboms=supplied_sboms)
    if signer is None:
        return Sealed(run.run_id, "sha256:" + hash_file(run.manifest)[0], None, ())
    if log_key is None:
        raise BadInput("a signed run needs a log key", hint="labaudit.attest.trust_store.ensure_keys gives both")
    return sign_run(run, signer, log_key=log_key, layout_key=layout_key)


def write_manifest(
    run: RunFolder, *, clock: Clock, sbom_missing: Sequence[Json] = (), supplied_sboms: Sequence[Json] = ()
) -> TrialTotals:
    """Writes attestation.json and manifest.json."""
    if run.sealed:
        raise BadInput("the run is sealed already", where=str(run.path), hint="a sealed run is never changed")
    totals = read_totals(run)
    resolved = read_document(run.resolved)
    created_at = rfc3339(clock.now())
    resolved_digest = "sha256:" + hash_file(run.resolved)[0]
    references = list(run.artifacts.references())
    inputs = SummaryInputs(
        run_id=run.run_id,
        created_at=created_at,
        tool=dict(TOOL),
        resolved=resolved,
        resolved_digest=resolved_digest,
        grades=read_document(run.grades),
        sbom_documents=[*_generated_sboms(run, supplied_sboms), *supplied_sboms],
        sbom_missing=sbom_missing,
        artifacts=[bytes.fromhex(hex_of_reference(reference)) for reference in references],
        redaction_counts=dict(sorted(Counter(redaction_mode(run.artifacts.meta(ref)) for ref in references).items())),
    )
    atomic.write_json(run.attestation, build_summary(inputs, totals))
    manifest = build_manifest(run, totals, run_id=run.run_id, created_at=created_at, resolved_digest=resolved_digest)
    atomic.write_json(run.manifest, manifest)
    return totals


def sign_run(run: RunFolder, signer: Signer, *, log_key: LogKey, layout_key: PrivateKey | None = None) -> Sealed:
    """Writes everything under attestations/ for a run that has its manifest."""
    links_key = layout_key or (signer.key if isinstance(signer, KeySigner) else None)
    if links_key is None:
        raise BadInput("keyless signing needs a local key for layout and links", hint="labaudit keys new")
    totals = read_totals(run)
    facts = read_facts(run, totals)
    run_id = str(facts.manifest["run_id"])
    origin = RUN_ORIGIN + run_id
    kinds = kinds_of(facts)
    signing = SigningFacts(str(log_key.verifier(origin)), links_key.public.pem, kinds)
    bundles = {kind: signer.bundle(build_statement(kind, facts, signing)) for kind in kinds}
    tree = ProofTree(totals.leaves)
    checkpoint = sign_checkpoint(origin, tree.size, tree.root(), log_key).render()
    _write_links(run, run_id, facts, links_key)
    atomic.write_bytes(run.checkpoint, checkpoint)
    _write_proofs(run, ProofWriter(bundles["run"], checkpoint), tree)
    for kind, data in bundles.items():
        atomic.write_bytes(run.bundle(kind), data)
    atomic.write_bytes(run.attestations / f"{run_id}.intoto.jsonl", envelopes_file(bundles.values()))
    atomic.write_bytes(run.attestations / "trusted_root.json", trusted_root_bytes())
    with atomic.replacing(run.sums) as stream:
        for line in sums_of_run(run, facts.manifest, facts.manifest_sha256):
            stream.write(line)
    return Sealed(run_id, "sha256:" + facts.manifest_sha256, signer.name, kinds)


def read_facts(run: RunFolder, totals: TrialTotals) -> RunFacts:
    """The facts of a run whose manifest is written."""
    data = run.manifest.read_bytes()
    manifest = read_document(run.manifest)
    documents = {path: read_document(run.path / path) for path in SBOM_PATHS.values() if (run.path / path).is_file()}
    return RunFacts(
        manifest=manifest,
        manifest_sha256=sha256_hex(data),
        resolved=read_document(run.resolved),
        inclusion=read_document(run.inclusion),
        grades=read_document(run.grades),
        summary=read_document(run.summary),
        started_at=totals.started_at,
        contract_files=dict(totals.contract_files),
        digests={entry["path"]: entry["sha256"] for entry in manifest["files"]},
        documents=documents,
    )


def _generated_sboms(run: RunFolder, supplied: Sequence[Json]) -> list[Json]:
    if not run.sbom.is_dir():
        return []
    apart = {entry["path"] for entry in supplied}
    names = sorted(f"sbom/{path.name}" for path in run.sbom.iterdir() if path.is_file())
    return [sbom_document(name, hash_file(run.path / name)[0]) for name in names if name not in apart]


def _write_links(run: RunFolder, run_id: str, facts: RunFacts, key: PrivateKey) -> None:
    digests = facts.digests | {"manifest.json": facts.manifest_sha256}
    for earlier in run.attestations.glob(f"{intoto.STEPS[0].name}.*.link"):
        # The plan signed with a key that is gone: no reader could check it, and the layout knows one key.
        earlier.unlink()
    for step in intoto.STEPS:
        target = run.attestations / intoto.link_name(step.name, key.public)
        atomic.write_bytes(target, intoto.sign_payload(intoto.link_payload(step, digests), key))
    atomic.write_bytes(
        run.attestations / intoto.LAYOUT_NAME, intoto.sign_payload(intoto.layout_payload(run_id, key.public), key)
    )


def _write_proofs(run: RunFolder, writer: ProofWriter, tree: ProofTree) -> None:
    for index, trial in enumerate(scheduled_trials(run)):
        data = writer.render(trial.trial_record.read_bytes(), index, tree.inclusion(index))
        # A proof is derived from what is durable already; one fsync per trial would cost more than the trial.
        atomic.write_bytes(run.proof(trial.trial_id), data, durable=False)
