"""Findings to one verdict: failed outweighs malformed, malformed outweighs policy_unmet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from labaudit.verify.reasons import REASONS

VerdictName = Literal["verified", "failed", "malformed", "policy_unmet"]
EXIT_CODES: dict[VerdictName, int] = {"verified": 0, "failed": 1, "malformed": 2, "policy_unmet": 3}
MAX_FINDINGS_PER_STEP = 200


class Finding(NamedTuple):
    """One thing that is wrong: a reason code, the path it stands at, and a sentence."""

    code: str
    path: str
    message: str

    def as_json(self) -> dict[str, str]:
        """The finding with its weight and next step."""
        reason = REASONS[self.code]
        return {
            "code": self.code,
            "path": self.path,
            "message": self.message,
            "verdict": reason.weight,
            "next": reason.next_step,
        }


def bounded(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The first findings of each weight: however many light ones come first, they never crowd out a heavy one."""
    kept, counts = [], Counter[str]()
    for finding in findings:
        weight = REASONS[finding.code].weight
        counts[weight] += 1
        if counts[weight] <= MAX_FINDINGS_PER_STEP:
            kept.append(finding)
    return tuple(kept)


class StepResult(NamedTuple):
    """What one numbered step found; `skipped` says why it had nothing to look at."""

    number: int
    name: str
    findings: tuple[Finding, ...]
    skipped: str = ""

    def as_json(self) -> dict[str, Any]:
        """The step as JSON."""
        outcome = "found" if self.findings else "skipped" if self.skipped else "ok"
        document: dict[str, Any] = {"step": self.number, "name": self.name, "result": outcome}
        if self.skipped:
            document["reason"] = self.skipped
        if self.findings:
            document["findings"] = [finding.as_json() for finding in self.findings]
        return document


@dataclass
class Report:
    """The outcome of one verification."""

    target: str
    kind: str
    steps: list[StepResult] = field(default_factory=list)
    run_id: str | None = None
    subject_digest: str | None = None
    signers: list[str] = field(default_factory=list)
    established: list[str] = field(default_factory=list)
    not_established: list[str] = field(default_factory=list)
    claims: dict[str, str] = field(default_factory=dict)
    provenance: str = "none"
    policy: dict[str, str] = field(default_factory=dict)

    @property
    def findings(self) -> list[Finding]:
        """All findings in the order of the steps."""
        return [finding for step in self.steps for finding in step.findings]

    def found_in(self, number: int) -> bool:
        """True when a step has findings."""
        return any(step.findings for step in self.steps if step.number == number)

    @property
    def verdict(self) -> VerdictName:
        """The heaviest finding decides."""
        weights = {REASONS[finding.code].weight for finding in self.findings}
        for name in ("failed", "malformed", "policy_unmet"):
            if name in weights:
                return name
        return "verified"

    @property
    def exit_code(self) -> int:
        """0 verified, 1 failed, 2 malformed, 3 policy unmet."""
        return EXIT_CODES[self.verdict]

    def as_json(self) -> dict[str, Any]:
        """The report as one JSON object."""
        return {
            "schema_version": "verification_v1",
            "target": self.target,
            "kind": self.kind,
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "run_id": self.run_id,
            "subject_digest": self.subject_digest,
            "signers": self.signers,
            "provenance": self.provenance,
            "policy": self.policy,
            "established": self.established,
            "not_established": self.not_established,
            "claims": self.claims,
            "findings": [finding.as_json() for finding in self.findings],
            "steps": [step.as_json() for step in self.steps],
        }
