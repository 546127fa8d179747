"""Observed trials to `inclusion.json`: for each scheduled trial whether it counts, by which rule, and why.

    I1 completed                 the trial ended with a result of its own; a failure and an error are results too
    X1 manifest_missing          its level needs a harness manifest, there is none that counts, and no leave was given
    X2 profile_violation         a profile invariant did not hold and the design says that this invalidates the run
    L1 lost                      no attempt ended with a result

Totals are counted from the rows. A run with an excluded trial is invalid by its own rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from labaudit.core.strict_json import parse_object
from labaudit.evidence.observation import NotObserved, ObservedTrial
from labaudit.planning.schedule import PlannedTrial
from labaudit.records.inclusion import Inclusion, InclusionRow, InclusionTotals
from labaudit.store.event_log import read_events
from labaudit.store.run_folder import RunFolder

Judgement = tuple[str, str, str]


def judge(observed: ObservedTrial, *, violations_invalidate: bool, lost_reason: Callable[[], str]) -> Judgement:
    """(status, rule, reason) of one trial."""
    if observed.lost:
        return "lost", "L1", lost_reason()
    if observed.manifest.hard_failure:
        return "excluded", "X1", f"the harness manifest does not count: {observed.manifest.problem}"
    violations = observed.violations
    if violations_invalidate and not isinstance(violations, NotObserved) and violations.profile_invariant:
        return "excluded", "X2", "; ".join(violations.notes) or "a profile invariant did not hold"
    if observed.outcome in {"missing", "error"}:
        return "included", "I1", "the trial ended without a result of its harness, which counts as it is"
    return "included", "I1", "the trial ended with a result"


def row(planned: PlannedTrial, observed: ObservedTrial, judgement: Judgement) -> InclusionRow:
    """The row of one scheduled trial."""
    status, rule, reason = judgement
    outcome = None if isinstance(observed.outcome, NotObserved) else observed.outcome
    return InclusionRow(
        index=planned.index,
        trial_id=planned.trial_id,
        variant_id=planned.variant_id,
        task_id=planned.task_id,
        repl_idx=planned.repl_idx,
        status=status,  # type: ignore[arg-type]
        rule=rule,
        reason=reason,
        outcome=outcome,
        attempts=observed.attempts if isinstance(observed.attempts, int) else 0,
    )


def inclusion(run_id: str, rows: Iterable[InclusionRow]) -> Inclusion:
    """The document, its totals counted."""
    all_rows = tuple(rows)
    counts = Counter(item.status for item in all_rows)
    totals = InclusionTotals(
        scheduled=len(all_rows), included=counts["included"], excluded=counts["excluded"], lost=counts["lost"]
    )
    return Inclusion(run_id=run_id, rows=all_rows, totals=totals)


def lost_reason(run: RunFolder, trial_id: str) -> str:
    """What the trial's own log says about the loss."""
    trial = run.trial(trial_id)
    if not trial.events.is_file():
        return "no attempt ended with a result"
    for event in read_events(trial.events):
        if event["event_type"] == "attempt.lost" and "payload_ref" in event:
            return str(parse_object(run.artifacts.get(str(event["payload_ref"])))["reason"])
    return "no attempt ended with a result"
