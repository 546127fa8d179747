"""A run folder to what a check of it found, before any page is written.

The check is `labaudit verify --integrity-only`, with the key that the run itself names: it says whether the folder
holds together, never whether its signer deserves trust. Its result is a function of the run alone, so a rebuild gives
the same pages.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from labaudit.attest.keys import PublicKey
from labaudit.errors import LabauditError
from labaudit.site.reading.published_run import PublishedRun
from labaudit.site.reading.signed_statements import named_key
from labaudit.verify.request import Anchors, Request
from labaudit.verify.sources import FolderSource
from labaudit.verify.verify_run import verify_run


@dataclass(frozen=True)
class RunCheck:
    """`verdict` is one of labaudit verify's, or not_checked when the caller asked for no check."""

    verdict: str
    findings: list[dict[str, str]] = field(default_factory=list)
    provenance: str = "none"
    established: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """True when nothing contradicts the run; a policy that asks for more is no contradiction."""
        return self.verdict in ("verified", "policy_unmet", "not_checked")


NOT_CHECKED = RunCheck("not_checked")


def check_run(run: PublishedRun) -> RunCheck:
    """What the folder's own bytes say."""
    request = Request(anchors=Anchors(keys=_own_keys(run)), integrity_only=True)
    report = verify_run(FolderSource(run.folder.path), request, target=run.run_id)
    findings = [finding.as_json() for finding in report.findings]
    return RunCheck(report.verdict, findings, report.provenance, list(report.established))


def _own_keys(run: PublishedRun) -> tuple[PublicKey, ...]:
    for item in run.statements:
        pem = named_key(item.statement) if item.kind == "run" else None
        if pem:
            try:
                return (PublicKey.from_pem(pem.encode()),)
            except LabauditError:
                return ()
    return ()
