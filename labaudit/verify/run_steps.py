"""The numbered steps of verifying a run. Each is a small function of the view; no step relies on another having run.

The numbers are stable: they stand in reports, in docs/verify.md and in the policy reports of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from labaudit.verify.checks import (
    artifacts,
    claims,
    derived,
    events,
    links,
    manifest,
    paths,
    receipts,
    statements,
    tree,
    trials,
)
from labaudit.verify.grades_check import grades_follow_from_the_evidence
from labaudit.verify.policy_check import policy_is_met
from labaudit.verify.run_view import RunView
from labaudit.verify.seen import seen_checkpoint_still_holds
from labaudit.verify.signatures import attestations_are_there, signatures_hold
from labaudit.verify.verdict import Finding

Check = Callable[[RunView], Iterator[Finding]]


class Step(NamedTuple):
    """One numbered step; `skip` says why it has nothing to look at, or nothing."""

    number: int
    name: str
    check: Check
    skip: Callable[[RunView], str]


def _never(view: RunView) -> str:
    return ""


def _unsigned(view: RunView) -> str:
    return "" if view.signed else "the run is not signed"


def _integrity_only(view: RunView) -> str:
    return "only integrity was asked for" if view.request.integrity_only else ""


def _nothing_seen(view: RunView) -> str:
    return "" if view.request.seen is not None else "no earlier checkpoint was given (--seen)"


def _no_recomputation(view: RunView) -> str:
    return "" if view.request.recompute_analysis is not None else "not asked for (--recompute-analysis)"


RUN_STEPS: tuple[Step, ...] = (
    Step(1, "every path is a plain file that something accounts for", paths.every_path_is_accounted_for, _never),
    Step(2, "the manifest is well formed", manifest.manifest_is_well_formed, _never),
    Step(3, "run-level files have their digests", manifest.listed_files_have_their_digests, _never),
    Step(4, "documents have their shape", manifest.documents_have_their_shape, _never),
    Step(5, "the schedule is well formed", trials.schedule_is_well_formed, _never),
    Step(6, "trial records fit the plan", trials.trial_records_fit_the_plan, _never),
    Step(7, "trial files have their digests", trials.trial_files_have_their_digests, _never),
    Step(8, "trial records make the run tree", trials.records_make_the_run_tree, _never),
    Step(9, "documents of a trial are the trial's", trials.trial_documents_are_of_their_trial, _never),
    Step(10, "event chains, trees and heads hold", events.event_logs_hold, _never),
    Step(11, "lists of artifacts are well formed", artifacts.artifact_lists_are_well_formed, _never),
    Step(12, "artifacts are what their names say", artifacts.artifacts_are_what_their_names_say, _never),
    Step(13, "the checkpoint is of this run", tree.checkpoint_is_of_this_run, _unsigned),
    Step(14, "single-trial proofs are those of the tree", tree.proofs_are_those_of_the_tree, _unsigned),
    Step(15, "attestations are there, and someone to trust", attestations_are_there, _never),
    Step(16, "signatures hold", signatures_hold, _unsigned),
    Step(17, "statements are about this run", statements.statements_are_about_this_run, _unsigned),
    Step(18, "statements follow from the evidence", statements.statements_follow_from_the_evidence, _unsigned),
    Step(19, "the summary follows from the evidence", statements.summary_follows_from_the_evidence, _never),
    Step(20, "unsigned copies equal their originals", derived.copies_are_equal, _unsigned),
    Step(21, "SHA256SUMS lists every file", derived.sums_list_every_file, _unsigned),
    Step(22, "in-toto links lead from plan to manifest", links.links_lead_from_plan_to_manifest, _unsigned),
    Step(23, "the resolved digest is the plan's", claims.resolved_digest_is_the_plans, _never),
    Step(24, "the table of trials follows from the records", claims.inclusion_follows_from_the_records, _never),
    Step(25, "grades follow from the evidence", grades_follow_from_the_evidence, _never),
    Step(26, "SBOMs describe what was run", claims.sboms_describe_the_image, _never),
    Step(27, "the analysis is of this run", claims.analysis_is_of_this_run, _never),
    Step(28, "the analysis follows from the trials", claims.analysis_follows_from_the_trials, _no_recomputation),
    Step(29, "the checkpoint that was seen before still holds", seen_checkpoint_still_holds, _nothing_seen),
    Step(30, "receipts of workers hold", receipts.receipts_of_workers_hold, receipts.no_worker),
    Step(31, "the policy is met", policy_is_met, _integrity_only),
)

# Steps that a conclusion rests on, by number.
SIGNATURES = (15, 16, 17, 18)
WHO_SIGNED = (15, 16)
ANALYSIS = 28
POLICY = 31
RECEIPTS = 30
INTEGRITY = (*(number for number in range(29) if number not in WHO_SIGNED), RECEIPTS)
