"""A run folder or bundle to a report: every step is run, whatever the others find, and the heaviest finding decides."""

from __future__ import annotations

from collections.abc import Sequence

from labaudit.verify.checks.judged import results_measured_again
from labaudit.verify.grades_check import grades_claim
from labaudit.verify.policy import SCALES
from labaudit.verify.request import Request
from labaudit.verify.run_steps import ANALYSIS, INTEGRITY, POLICY, RUN_STEPS, SIGNATURES, Step
from labaudit.verify.run_view import RunView
from labaudit.verify.signatures import claimed_signers, trusted_signers
from labaudit.verify.sources import Source
from labaudit.verify.verdict import Finding, Report, StepResult, bounded


def verify_run(
    source: Source, request: Request, *, target: str, kind: str = "run", steps: Sequence[Step] = RUN_STEPS
) -> Report:
    """All steps over one run, in the order given; the report lists them by number."""
    view = RunView(source, request)
    results = [_run(step, view) for step in steps]
    # Opening a file shows its mode, so what is odd about files is known when all steps are done.
    odd = StepResult(0, "no file has an execute bit or a name that cannot be written", bounded(source.odd.values()))
    report = Report(target, kind, sorted([odd, *results]), run_id=view.run_id)
    report.policy = {"name": request.policy.name, "sha256": request.policy.sha256}
    if view.manifest_sha256 is not None:
        report.subject_digest = f"sha256:{view.manifest_sha256}"
    report.claims = _claims(view, report)
    _conclude(report, view)
    _demand_provenance(report, request)
    return report


def _run(step: Step, view: RunView) -> StepResult:
    reason = step.skip(view)
    if reason:
        return StepResult(step.number, step.name, (), reason)
    return StepResult(step.number, step.name, bounded(step.check(view)))


def _claims(view: RunView, report: Report) -> dict[str, str]:
    analysis = "not_recomputed" if view.request.recompute_analysis is None else _outcome(report, ANALYSIS)
    return {"grades": grades_claim(view), "analysis": analysis, "trials_table": analysis}


def _outcome(report: Report, number: int) -> str:
    return "mismatch" if report.found_in(number) else "recomputed"


def _conclude(report: Report, view: RunView) -> None:
    """What was established, and what was not, in words that stay within it."""
    trusted, claimed = trusted_signers(view), claimed_signers(view)
    report.signers = sorted(set(trusted.values()))
    integrity = not any(report.found_in(number) for number in INTEGRITY)
    if integrity and view.manifest is not None:
        report.established.append("every byte of the run is as it was sealed, and its parts agree with each other")
        report.provenance = "hashed"
    else:
        report.not_established.append("that the run is as it was sealed")
    signed = "run" in trusted and not any(report.found_in(number) for number in SIGNATURES)
    if signed:
        report.established.append(f"signed by {', '.join(report.signers)}, whom you trust")
        report.provenance = "signed" if integrity else report.provenance
    else:
        report.not_established.append(_no_signer(view, claimed))
    demanded = all(kind in trusted for kind in view.request.policy.kinds)
    has_sbom = any(kind.startswith("sbom-") for kind in trusted)
    if signed and integrity and demanded and has_sbom:
        report.provenance = "attested"
    for name, value in report.claims.items():
        text = {"recomputed": report.established, "mismatch": None}.get(value, report.not_established)
        if text is not None:
            text.append(f"{name}: {value}")
    again = results_measured_again(view)
    if again:
        places = ", ".join(again[:3]) + (" and more" if len(again) > 3 else "")
        report.not_established.append(f"that the first result counts: {len(again)} judged attempts do not ({places})")
    report.not_established.append("that the evidence is honest: a signature says who and unchanged")


def _demand_provenance(report: Report, request: Request) -> None:
    """The one grade that no file can hold, because it is what this verification establishes."""
    minimum = dict(request.policy.minimum_grades).get("provenance")
    scale = SCALES["provenance"]
    if minimum is None or request.integrity_only or scale.index(report.provenance) >= scale.index(minimum):
        return
    what = f"provenance is {report.provenance}, policy {request.policy.name} asks for {minimum}"
    place = next(place for place, step in enumerate(report.steps) if step.number == POLICY)
    number, name, findings, _ = report.steps[place]
    report.steps[place] = StepResult(number, name, (*findings, Finding("grade_too_low", "attestations", what)))


def _no_signer(view: RunView, claimed: list[str]) -> str:
    if not view.signed:
        return "who made the run: it is not signed"
    named = f" (the run itself names {', '.join(claimed)}, which proves nothing)" if claimed else ""
    return f"who made the run: no signer that you trust was found{named}"
