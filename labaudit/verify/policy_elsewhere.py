"""Does a site, a session or a proof give what the policy demands?

A policy is written for runs. What another target cannot show (a grade, a level, an SBOM, a recomputed claim) is unmet,
never passed over; the kinds of statements are a run's, and are asked of a run only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from labaudit.attest.bundles import Bundle
from labaudit.attest.timestamps import proven_time
from labaudit.verify.policy import SCALES, Policy
from labaudit.verify.request import Request
from labaudit.verify.verdict import Finding, Report, StepResult


def demand(report: Report, request: Request, bundles: Mapping[str, Bundle | Finding | None], *, done: Set[str]) -> None:
    """Adds the last step of a report that has come to its conclusion; `done` are the claims that were recomputed."""
    if request.integrity_only:
        return
    found = [*_unshown(report, request.policy, done), *_times(request, bundles), *_provenance(report, request.policy)]
    number = max(step.number for step in report.steps) + 1
    report.steps.append(StepResult(number, "the policy is met", tuple(found)))


def _unshown(report: Report, policy: Policy, done: Set[str]) -> Iterator[Finding]:
    wanted = [f"{name} of at least {minimum}" for name, minimum in policy.minimum_grades if name != "provenance"]
    wanted += [f"an observed level of at least {policy.minimum_level}"] if policy.minimum_level is not None else []
    wanted += ["an SBOM"] if policy.sbom_required else []
    wanted += ["how many trials are lost"] if policy.max_lost_fraction is not None else []
    wanted += [f"that there is no {caveat}" for caveat in policy.refuse_caveats]
    for what in wanted:
        message = f"policy {policy.name} demands {what}, which a {report.kind} cannot show: verify the run itself"
        yield Finding("not_recomputed", report.kind, message)
    for claim in policy.recomputed:
        if claim not in done:
            yield Finding("not_recomputed", claim, f"policy {policy.name} demands that {claim} be recomputed")


def _times(request: Request, bundles: Mapping[str, Bundle | Finding | None]) -> Iterator[Finding]:
    for path, bundle in bundles.items():
        if isinstance(bundle, Bundle):
            yield from timestamp_findings(request, path, bundle)


def timestamp_findings(request: Request, path: str, bundle: Bundle) -> Iterator[Finding]:
    """An own-key bundle needs a token that an authority of --trusted-root gave; a keyless one has its own times."""
    if not request.policy.timestamp_required or bundle.keyless:
        return
    root, signature = request.anchors.trusted_root, bundle.envelope.signature
    if not bundle.timestamps:
        yield Finding("timestamp_absent", path, f"policy {request.policy.name} demands a timestamp")
    elif root is None or not any(proven_time(item, signature, root) for item in bundle.timestamps):
        yield Finding("timestamp_unproven", path, "no authority of the trusted root gave this timestamp")


def _provenance(report: Report, policy: Policy) -> Iterator[Finding]:
    minimum, scale = dict(policy.minimum_grades).get("provenance"), SCALES["provenance"]
    if minimum is not None and scale.index(report.provenance) < scale.index(minimum):
        what = f"provenance is {report.provenance}, policy {policy.name} asks for {minimum}"
        yield Finding("grade_too_low", report.kind, what)
