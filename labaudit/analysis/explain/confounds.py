"""Trials and their evidence to confound suspects: things other than the variant in which the arms differ.

Each suspect is an association with its evidence source and coverage. Too little evidence is said, never passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from labaudit.analysis.explain.evidence_table import EvidenceTable
from labaudit.analysis.explain.trial_evidence import seconds_between
from labaudit.analysis.statistics.bounds import differential_missingness_p as fisher_rates_p
from labaudit.analysis.statistics.mcnemar import sign_test_p
from labaudit.analysis.trials.rows import TrialRow


@dataclass(frozen=True)
class Suspect:
    """One association; `status` is decided once all p-values are corrected together."""

    variant: str
    kind: str
    id: str
    evidence_source: str
    covered: int
    total: int
    sentence: str
    statistic: str | None = None
    value: float | None = None
    p: float | None = None
    method: str | None = None
    certain: bool = False
    insufficient: bool = False


@dataclass(frozen=True)
class Arms:
    """The rows of a variant and of the baseline."""

    variant: str
    mine: Sequence[TrialRow]
    other: Sequence[TrialRow]

    @property
    def rows(self) -> list[TrialRow]:
        """All of them."""
        return [*self.mine, *self.other]

    @property
    def recorded_by(self) -> str:
        """The evidence source of what trial records say: the runner's own events, or another tool's files."""
        return framework_source(self.rows)


def framework_source(rows: Sequence[TrialRow]) -> str:
    """`imported` when every trial was brought in from another tool."""
    imported = bool(rows) and all(row.evidence_origin == "imported" for row in rows)
    return "imported" if imported else "framework_events"


def confound_suspects(arms: Arms, evidence: EvidenceTable) -> Iterator[Suspect]:
    """All confound checks of one variant, in a fixed order."""
    yield from _undeclared_configuration(arms, evidence)
    yield _workers(arms)
    yield _start_order(arms)
    source = arms.recorded_by
    yield _rates(arms, "retries", source, lambda row: row.attempts > 1, _seen_by_the_runner, "retried trials")
    yield _rates(
        arms, "missingness", source, lambda row: row.status != "included", lambda _: True, "unusable trials"
    )
    yield _feature_rate(arms, evidence, "budget_exhaustion", source, "budget_spent", "spent budgets")
    yield _feature_rate(arms, evidence, "stop_observed", "hooks", "stopped", "trials that were told to stop")
    yield _feature_rate(arms, evidence, "proxy_blocks", "network_proxy", "proxy_blocked", "trials with a blocked call")


def _seen_by_the_runner(row: TrialRow) -> bool:
    """How often another tool tried, and where, its results do not say."""
    return row.evidence_origin != "imported"


def _undeclared_configuration(arms: Arms, evidence: EvidenceTable) -> Iterator[Suspect]:
    """Facts of the sandbox that differ between arms although the variants differ only in their bindings."""
    known = [row for row in arms.rows if evidence.configuration.get(row.trial_id)]
    total = len(arms.rows)
    facts = sorted({key for row in known for key in evidence.configuration[row.trial_id]})
    if not facts:
        sentence = "No record shows whether the arms were configured alike: no association can be checked."
        yield _insufficient(arms.variant, "undeclared_configuration", arms.recorded_by, 0, total, sentence)
        return
    clean = True
    for fact in facts:
        mine, other = (
            {evidence.configuration.get(row.trial_id, {}).get(fact) for row in side} - {None}
            for side in (arms.mine, arms.other)
        )
        if mine and other and mine != other:
            clean = False
            yield Suspect(
                variant=arms.variant,
                kind="confound",
                id=f"undeclared_configuration:{fact}",
                evidence_source=arms.recorded_by,
                covered=len(known),
                total=total,
                sentence=f"The arms differ in {fact}, which no variant declares: an association with any effect seen.",
                statistic="distinct_values",
                value=float(len(mine | other)),
                certain=True,
            )
    if clean:
        sentence = f"No association: the {len(facts)} recorded facts of the sandbox are the same in both arms."
        yield Suspect(
            arms.variant, "confound", "undeclared_configuration", arms.recorded_by, len(known), total, sentence
        )


def _workers(arms: Arms) -> Suspect:
    """Whether some worker got more of one arm: Fisher for each worker, times the number of workers."""
    known = [row for row in arms.rows if row.evidence_origin is not None and _seen_by_the_runner(row)]
    if not known:
        sentence = "No record shows which worker ran which trial: no association can be checked."
        return _insufficient(arms.variant, "worker", arms.recorded_by, 0, len(arms.rows), sentence)
    names = sorted({_worker(row) for row in known})
    worst, lowest = names[0], 1.0
    for name in names if len(names) > 1 else ():
        mine, other = (sum(1 for row in side if _worker(row) == name) for side in (arms.mine, arms.other))
        p = fisher_rates_p(mine, len(arms.mine), other, len(arms.other))
        if p is not None and p < lowest:
            worst, lowest = name, p
    p_all = min(1.0, lowest * len(names))
    sentence = f"Checked for an association between worker and arm over {len(names)} workers (most uneven: {worst})."
    if len(names) == 1:
        sentence = f"No association between worker and arm: all trials ran in one place ({worst})."
    return Suspect(
        arms.variant,
        "confound",
        "worker",
        arms.recorded_by,
        len(known),
        len(arms.rows),
        sentence,
        "workers",
        float(len(names)),
        p_all,
        "fisher_bonferroni",
    )


def _worker(row: TrialRow) -> str:
    return row.worker or row.evidence_origin or "unknown"


def _start_order(arms: Arms) -> Suspect:
    """Whether the variant systematically started before or after its partner."""
    other = {(row.task_id, row.repl_idx): row for row in arms.other}
    earlier = later = covered = 0
    for row in arms.mine:
        partner = other.get((row.task_id, row.repl_idx))
        gap = seconds_between(partner.started_at, row.started_at) if partner else None
        if gap is not None:
            covered += 1
            earlier, later = earlier + (gap < 0), later + (gap > 0)
    if covered == 0:
        sentence = "No pair of trials has recorded start times: no association can be checked."
        return _insufficient(arms.variant, "start_order", arms.recorded_by, 0, len(arms.mine), sentence)
    share = earlier / max(1, earlier + later)
    seen = f"the variant started first in {earlier} of {covered} pairs"
    sentence = f"Checked for an association between arm and start order: {seen}."
    return Suspect(
        arms.variant,
        "confound",
        "start_order",
        arms.recorded_by,
        covered,
        len(arms.mine),
        sentence,
        "share_started_first",
        share,
        sign_test_p(earlier, later),
        "sign_test",
    )


def _feature_rate(
    arms: Arms, evidence: EvidenceTable, name: str, source: str, feature: str, what: str
) -> Suspect:
    def known(row: TrialRow) -> bool:
        return feature in evidence.features.get(row.trial_id, {})

    return _rates(arms, name, source, lambda row: evidence.features[row.trial_id][feature] > 0, known, what)


def _rates(
    arms: Arms,
    name: str,
    source: str,
    happened: Callable[[TrialRow], bool],
    known: Callable[[TrialRow], bool],
    what: str,
) -> Suspect:
    """A rate that should be alike in both arms, by Fisher's exact test over the trials where it is known."""
    sides = [[row for row in side if known(row)] for side in (arms.mine, arms.other)]
    covered = len(sides[0]) + len(sides[1])
    if not sides[0] or not sides[1]:
        sentence = f"No evidence about {what} in at least one arm: no association can be checked."
        return _insufficient(arms.variant, name, source, covered, len(arms.rows), sentence)
    counts = [sum(1 for row in side if happened(row)) for side in sides]
    sentence = (
        f"Checked for an association between arm and {what}: {counts[0]} of {len(sides[0])} in the variant, "
        f"{counts[1]} of {len(sides[1])} in the baseline."
    )
    return Suspect(
        arms.variant,
        "confound",
        name,
        source,
        covered,
        len(arms.rows),
        sentence,
        "rate_difference",
        counts[0] / len(sides[0]) - counts[1] / len(sides[1]),
        fisher_rates_p(counts[0], len(sides[0]), counts[1], len(sides[1])),
        "fisher_exact",
    )


def _insufficient(variant: str, name: str, source: str, covered: int, total: int, sentence: str) -> Suspect:
    return Suspect(variant, "confound", name, source, covered, total, sentence, insufficient=True)
