"""A report to lines for a terminal: the verdict first, then what was found, what was established and what was not."""

from __future__ import annotations

from collections.abc import Iterator

from labaudit.verify.reasons import REASONS
from labaudit.verify.verdict import Finding, Report

_SHOWN = 40
_HEADLINES = {
    "verified": "VERIFIED",
    "failed": "FAILED",
    "malformed": "MALFORMED",
    "policy_unmet": "POLICY UNMET",
}


def report_lines(report: Report) -> Iterator[str]:
    """The report in words."""
    yield f"{_HEADLINES[report.verdict]}  {report.kind} {_plain(report.run_id or report.target)}"
    if report.subject_digest:
        yield f"  subject     {report.subject_digest}"
    if report.policy:
        yield f"  policy      {report.policy['name']}"
    yield f"  provenance  {report.provenance}"
    yield from _findings(report.findings)
    if report.established:
        yield "established:"
        yield from (f"  + {_plain(line)}" for line in report.established)
    if report.not_established:
        yield "not established:"
        yield from (f"  - {_plain(line)}" for line in report.not_established)


def _findings(findings: list[Finding]) -> Iterator[str]:
    if not findings:
        return
    yield "found:"
    for finding in findings[:_SHOWN]:
        yield f"  {finding.code}  {_plain(finding.path)}: {_plain(finding.message)}"
        yield f"      next: {REASONS[finding.code].next_step}"
    if len(findings) > _SHOWN:
        yield f"  ... and {len(findings) - _SHOWN} more (--json lists them)"


def _plain(text: str) -> str:
    """Text from a target shown so that it cannot steer a terminal."""
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
