"""Is the checkpoint this run's, signed by the log key that the run attestation names, and does each proof hold?"""

from __future__ import annotations

from collections.abc import Iterator

from labaudit.attest.checkpoint import MAX_CHECKPOINT, RUN_ORIGIN, Checkpoint, parse_checkpoint
from labaudit.attest.log_key import NoteVerifier
from labaudit.attest.proofs import MAX_PROOF, ProofWriter, parse_proof
from labaudit.core.merkle import ProofTree
from labaudit.errors import BadInput
from labaudit.verify.run_view import RunView
from labaudit.verify.sources import CannotRead
from labaudit.verify.verdict import Finding

PATH = "attestations/checkpoint"


def read_checkpoint(view: RunView) -> Checkpoint | Finding:
    """The run's checkpoint, or what is wrong with it."""
    try:
        return parse_checkpoint(view.source.read(PATH, MAX_CHECKPOINT), where=PATH)
    except CannotRead as error:
        finding = error.finding
        return finding._replace(code="checkpoint_missing") if finding.code == "file_missing" else finding
    except BadInput as error:
        return Finding("checkpoint_malformed", PATH, error.what)


def log_key(view: RunView) -> NoteVerifier | None:
    """The log's verifier key as the run statement gives it."""
    if view.run_parameters is None:
        return None
    try:
        return NoteVerifier.parse(str(view.run_parameters["log_key"]))
    except BadInput:
        return None


def checkpoint_is_of_this_run(view: RunView) -> Iterator[Finding]:
    """Origin, size and root are the manifest's, and the log key signed them."""
    found = read_checkpoint(view)
    if isinstance(found, Finding):
        yield found
        return
    if view.manifest is None:
        return
    if found.origin != RUN_ORIGIN + str(view.run_id):
        yield Finding("checkpoint_origin", PATH, f"is of {found.origin[:100]!r}, not of this run")
    tree = view.manifest["run_tree"]
    if (found.size, found.root.hex()) != (tree["size"], tree["root"]):
        yield Finding("checkpoint_root", PATH, f"is over {found.size} records with another root than the manifest's")
    key = log_key(view)
    if key is not None and not found.signed_by(key):
        yield Finding("checkpoint_signature", PATH, "is not signed by the log key in the run attestation")


def _explain(view: RunView, path: str, trial_id: str, stored: bytes, checkpoint: bytes, index: int) -> Finding:
    """A proof that holds by itself for another record shows that the record was changed, not the proof."""
    try:
        proof = parse_proof(stored, where=path)
        holds = proof.holds and proof.index == index and proof.checkpoint.render() == checkpoint
        if holds and proof.record != view.record_bytes(trial_id):
            where = f"trials/{trial_id}/trial_record.json"
            return Finding("digest_mismatch", where, "is not the record that its proof and the checkpoint hold")
    except BadInput as error:
        return Finding("proof_malformed", path, error.what)
    return Finding("proof_mismatch", path, "is not the proof of this trial in this tree")


def proofs_are_those_of_the_tree(view: RunView) -> Iterator[Finding]:
    """Each proof is, byte for byte, the one that the tree, the checkpoint and the run attestation give."""
    leaves = view.leaves
    try:
        checkpoint = view.source.read(PATH, MAX_CHECKPOINT)
        bundle = view.source.read("attestations/run.sigstore.json", MAX_PROOF)
    except CannotRead:
        return  # the checks that own these files say so
    if leaves is None:
        return
    writer, tree = ProofWriter(bundle, checkpoint), ProofTree(leaves)
    for index, trial_id in enumerate(view.trial_ids):
        path = f"attestations/proofs/{trial_id}.tlog-proof"
        try:
            expected = writer.render(view.record_bytes(trial_id), index, tree.inclusion(index))
            stored = view.source.read(path, MAX_PROOF)
            if stored != expected:
                yield _explain(view, path, trial_id, stored, checkpoint, index)
        except CannotRead as error:
            yield error.finding
