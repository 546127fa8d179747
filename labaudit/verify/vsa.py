"""A verdict to a SLSA verification summary: signed by whoever verified, so that others need not verify again.

`verifiedLevels` holds what was established about provenance, in this tool's words; no SLSA build level is claimed.
"""

from __future__ import annotations

from pathlib import Path

from labaudit import __version__
from labaudit.attest.run_reader import Json
from labaudit.attest.signers import KeySigner
from labaudit.attest.statements import BUILDER_ID, VSA_PREDICATE, statement_about
from labaudit.attest.trust_store import ensure_keys
from labaudit.core.clock import Clock, SystemClock, rfc3339
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder
from labaudit.verify.verdict import Report

_SUBJECTS = {"site": "index.json"}


def vsa_predicate(report: Report, *, verified_at: str) -> Json:
    """The predicate of the summary."""
    policy: Json = {"uri": f"https://agent-lab.local/policies/{report.policy.get('name', 'none')}"}
    if report.policy.get("sha256"):
        policy["digest"] = {"sha256": report.policy["sha256"]}
    passed = report.verdict == "verified"
    return {
        "verifier": {"id": f"{BUILDER_ID}/verify", "version": {"labaudit": __version__}},
        "timeVerified": verified_at,
        "resourceUri": f"https://agent-lab.local/runs/{report.run_id or 'unknown'}",
        "policy": policy,
        "verificationResult": "PASSED" if passed else "FAILED",
        "verifiedLevels": [f"LABAUDIT_PROVENANCE_{report.provenance.upper()}"] if passed else [],
        "slsaVersion": "1.1",
        "labaudit": {
            "verdict": report.verdict,
            "kind": report.kind,
            "signers": report.signers,
            "claims": report.claims,
            "reasons": sorted({finding.code for finding in report.findings}),
        },
    }


def write_vsa(
    report: Report, path: Path, lab: LabFolder, *, key_path: Path | None = None, clock: Clock | None = None
) -> str | None:
    """Writes the summary as a Sigstore bundle and gives the signer's fingerprint; None when there is no subject."""
    if report.subject_digest is None:
        return None
    keys = ensure_keys(lab, key_path=key_path)
    predicate = vsa_predicate(report, verified_at=rfc3339((clock or SystemClock()).now()))
    subject = _SUBJECTS.get(report.kind, "manifest.json")
    statement = statement_about(subject, report.subject_digest.removeprefix("sha256:"), VSA_PREDICATE, predicate)
    signer = KeySigner(keys.signing)
    atomic.write_bytes(path, signer.bundle(statement))
    return signer.name
