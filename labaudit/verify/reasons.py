"""Every reason code: its verdict and the next thing to do. Codes are stable; docs/verify.md explains each."""

from __future__ import annotations

from typing import Literal, NamedTuple

Weight = Literal["failed", "malformed", "policy_unmet"]

_ASK = "ask the publisher for an untouched copy"
_RESEAL = "the run was sealed with a contradiction inside; do not rely on it"
_READ = "check owner, permissions and disk, then verify again"
_ANCHOR = "pass --key PUB, or trust one: labaudit keys trust PUB"


class Reason(NamedTuple):
    """What a code means for the verdict, and what to do about it."""

    weight: Weight
    next_step: str


REASONS: dict[str, Reason] = {
    # 1 paths
    "link_found": Reason("failed", "a run holds no links; " + _ASK),
    "special_file": Reason("failed", "a run holds regular files only; " + _ASK),
    "exec_bit": Reason("failed", "no file of a run is executable: chmod a-x, then find out who set it"),
    "extra_file": Reason("failed", "no signature covers this file; remove it, or find out who added it"),
    "file_missing": Reason("failed", _ASK),
    "name_undecodable": Reason("failed", "no signature covers a name that is no UTF-8; remove the file"),
    "unreadable": Reason("malformed", _READ),
    "too_large": Reason("malformed", "the file is larger than its kind can be; " + _ASK),
    # 2 manifest
    "manifest_missing": Reason("malformed", "this folder is no sealed run; finish it: labaudit resume RUN"),
    "manifest_malformed": Reason("malformed", _ASK),
    "path_unsafe": Reason("failed", "a path leaves the run folder; do not unpack or serve this run"),
    "path_duplicate": Reason("failed", _RESEAL),
    "path_misplaced": Reason("failed", _RESEAL),
    # 3 digests
    "digest_mismatch": Reason("failed", "the file was changed after sealing; " + _ASK),
    "size_mismatch": Reason("failed", "the file was changed after sealing; " + _ASK),
    "document_malformed": Reason("malformed", _RESEAL),
    # 4 trials and tree
    "record_malformed": Reason("malformed", _ASK),
    "record_mismatch": Reason("failed", _RESEAL),
    "schedule_mismatch": Reason("failed", _RESEAL),
    "run_tree_mismatch": Reason("failed", "the trial records are not those that were sealed; " + _ASK),
    "image_mismatch": Reason("failed", "the trial ran another image than the plan names"),
    "network_evidence_mismatch": Reason("failed", _RESEAL),
    # 5 events
    "event_malformed": Reason("malformed", _ASK),
    "event_not_canonical": Reason("malformed", _ASK),
    "event_chain_broken": Reason("failed", "events were changed, moved or removed here; " + _ASK),
    "event_sequence": Reason("failed", "events are missing or repeated here; " + _ASK),
    "event_identity": Reason("failed", "the log belongs to another trial; " + _ASK),
    "event_log_unterminated": Reason("failed", "the log does not end with trial.sealed; it was cut or grown"),
    "events_head_mismatch": Reason("failed", "the sealed head does not fit the log; " + _ASK),
    "payload_unlisted": Reason("failed", "an event points at an artifact that its trial does not list"),
    # 6 artifacts
    "artifact_misnamed": Reason("failed", "a stored object is not what its name says; " + _ASK),
    "artifact_list_malformed": Reason("malformed", _ASK),
    # 7 checkpoint and proofs
    "checkpoint_missing": Reason("failed", "the signed tree head was removed; " + _ASK),
    "checkpoint_malformed": Reason("malformed", _ASK),
    "checkpoint_origin": Reason("failed", "the checkpoint is another run's"),
    "checkpoint_root": Reason("failed", "the checkpoint's tree is not the manifest's"),
    "checkpoint_signature": Reason("failed", "the log key in the run attestation did not sign this checkpoint"),
    "proof_malformed": Reason("malformed", _ASK),
    "proof_mismatch": Reason("failed", "the proof is not the one that this trial's record gives"),
    # 8 signatures
    "unsigned": Reason("policy_unmet", "the run carries no attestation; sign it: labaudit attest RUN"),
    "no_trust_anchor": Reason("policy_unmet", _ANCHOR),
    "signer_not_trusted": Reason("policy_unmet", "compare the key's fingerprint with the publisher, then " + _ANCHOR),
    "signature_invalid": Reason("failed", "the envelope was changed after signing; " + _ASK),
    "bundle_malformed": Reason("malformed", _ASK),
    "bundle_field_differs": Reason("failed", "a field that no signature covers was changed; " + _ASK),
    "payload_type": Reason("failed", "the envelope holds no in-toto statement"),
    "keyless_invalid": Reason("failed", "check --identity, --issuer and --trusted-root"),
    "keyless_identity": Reason("policy_unmet", "another identity signed; identities are compared whole"),
    "timestamp_unproven": Reason("policy_unmet", "pass the --trusted-root of the timestamp authority"),
    # 9 statements
    "statement_malformed": Reason("malformed", _ASK),
    "predicate_type": Reason("failed", "the statement is not of the kind that its file name says"),
    "subject_mismatch": Reason("failed", "the statement is about something else; " + _ASK),
    "statement_mismatch": Reason("failed", "the signed claim is not what the evidence gives"),
    "attestation_missing": Reason("failed", "a statement that the run attestation lists was removed; " + _ASK),
    "attestation_unlisted": Reason("failed", "a statement that the run attestation does not list was added"),
    "summary_mismatch": Reason("failed", "attestation.json is not what the evidence gives"),
    "copy_differs": Reason("failed", "a derived copy does not fit its original; " + _ASK),
    # 10 links
    "layout_mismatch": Reason("failed", "the in-toto layout is not the one that a run has; nothing in it was executed"),
    "link_mismatch": Reason("failed", "the step's link does not fit the files"),
    "link_signature": Reason("failed", "the layout's key did not sign this link"),
    "link_malformed": Reason("malformed", _ASK),
    "link_missing": Reason("failed", _ASK),
    # 11 claims
    "resolved_digest_mismatch": Reason("failed", "the plan is not the one that was registered"),
    "variant_mismatch": Reason("failed", _RESEAL),
    "inclusion_mismatch": Reason("failed", "the table of trials does not follow from their records"),
    "grade_mismatch": Reason("failed", "a grade does not follow from the evidence; see `labaudit grade RUN`"),
    "grades_unavailable": Reason("malformed", "grades cannot be recomputed from this evidence"),
    "analysis_mismatch": Reason("failed", "the analysis is not of this run's data; see `labaudit analyze RUN`"),
    "sbom_subject": Reason("failed", "the SBOM describes another image"),
    "sbom_malformed": Reason("malformed", _ASK),
    "site_mismatch": Reason("failed", "the page is not the one that was signed; " + _ASK),
    "receipt_missing": Reason("failed", "a worker's trial without its receipt is nobody's word; " + _ASK),
    "receipt_malformed": Reason("malformed", _ASK),
    "receipt_signature": Reason("failed", "the worker did not sign this receipt; do not rely on the trial"),
    "receipt_mismatch": Reason("failed", "the worker signed for something else than the run records"),
    # 12 history
    "seen_malformed": Reason("malformed", "give the checkpoint file that you kept"),
    "seen_other_log": Reason("failed", "the checkpoint that you kept is of another log"),
    "seen_rollback": Reason("failed", "the log is shorter than the one that you saw: history was removed"),
    "seen_fork": Reason("failed", "no way leads from the head that you saw to this one: history was rewritten"),
    "log_malformed": Reason("malformed", _ASK),
    "log_mismatch": Reason("failed", "the published log does not give its own checkpoint"),
    # 13 containers
    "archive_malformed": Reason("malformed", "make it again: labaudit bundle RUN; or unpack it and verify the folder"),
    "archive_duplicate": Reason("malformed", "the archive names a file twice; readers would disagree about it"),
    "archive_bomb": Reason("malformed", "the archive expands beyond what it declares"),
    # 14 policy
    "kind_absent": Reason("policy_unmet", "the policy demands this kind of attestation"),
    "grade_too_low": Reason("policy_unmet", "the run verifies, but the policy asks for a better grade"),
    "level_too_low": Reason("policy_unmet", "the run verifies, but the policy asks for a higher integration level"),
    "not_recomputed": Reason("policy_unmet", "verify again with --recompute-analysis or --rebuild"),
    "signer_not_allowed": Reason("policy_unmet", "the signer is trusted, but the policy names others"),
    "sbom_absent": Reason("policy_unmet", "the policy demands an SBOM of the image"),
    "caveat_refused": Reason("policy_unmet", "the policy refuses runs with this caveat"),
    "trials_lost": Reason("policy_unmet", "the policy allows fewer lost trials"),
    "timestamp_absent": Reason("policy_unmet", "the policy demands a timestamp on every signature"),
}
