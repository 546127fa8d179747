"""Comparisons, rows and suspects to the two documents that a reader opens first: `comparisons.json`, `summary.json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from labaudit.analysis.effects.families import Compared
from labaudit.analysis.effects.wording import coded
from labaudit.analysis.trials.rows import TrialRow, rows_digest
from labaudit.records.analysis_summary import (
    AnalysisSummary,
    Headline,
    OutcomeCounts,
    TableDigest,
    VariantMetric,
    VariantSummary,
)
from labaudit.records.comparisons import Coded, Comparison, Comparisons, PlannedAnalysis, ValuesFrom
from labaudit.records.inclusion import InclusionTotals
from labaudit.records.resolved import ResolvedExperiment

_OUTCOMES = ("success", "failure", "missing", "error")


def comparisons_document(
    run_id: str,
    resolved_digest: str,
    resolved: ResolvedExperiment,
    compared: Compared,
    rows: Sequence[TrialRow],
    notes: Sequence[Coded] = (),
) -> Comparisons:
    """The content of `comparisons.json`; `notes` are what the reading of the run had to say."""
    plan = resolved.analysis_plan
    return Comparisons(
        run_id=run_id,
        resolved_digest=resolved_digest,
        baseline=compared.settings.baseline,
        variants=compared.settings.variants,
        plan=PlannedAnalysis(
            primary=plan.primary,
            secondary=plan.secondary,
            missingness=plan.missingness,
            method=plan.ci.method,
            level=plan.ci.level,
            resamples=plan.ci.resamples,
            seed=resolved.design.seed,
            correction_primary=plan.correction.primary,
            correction_secondary=plan.correction.secondary,
            estimand=plan.estimand,
            cluster=plan.cluster,
        ),
        values_from=values_from(rows),
        comparisons=tuple(compared.comparisons),
        warnings=(*run_warnings(compared, rows), *notes),
    )


def summary_document(
    comparisons: Comparisons,
    resolved: ResolvedExperiment,
    compared: Compared,
    rows: Sequence[TrialRow],
    suspects: Mapping[str, int],
    exemplars: int,
) -> AnalysisSummary:
    """The content of `summary.json`; `suspects` counts them by status."""
    return AnalysisSummary(
        run_id=comparisons.run_id,
        resolved_digest=comparisons.resolved_digest,
        experiment_id=resolved.experiment.id,
        baseline=comparisons.baseline,
        tasks=len(compared.table.tasks),
        replications=resolved.design.replications,
        totals=totals(rows),
        values_from=comparisons.values_from,
        trials_table=TableDigest(rows=len(rows), rows_sha256=rows_digest(rows)),
        variants=tuple(_variants(compared, rows)),
        primary=tuple(headline(one) for one in comparisons.comparisons if one.role == "primary"),
        undeclared_metrics=tuple(_undeclared(compared, rows)),
        comparisons=len(comparisons.comparisons),
        suspects=suspects.get("flagged", 0),
        insufficient_evidence=suspects.get("insufficient_evidence", 0),
        exemplars=exemplars,
        warnings=comparisons.warnings,
    )


def headline(one: Comparison) -> Headline:
    """A comparison in one line."""
    return Headline(
        id=one.id,
        variant=one.variant,
        metric=one.metric,
        effect=one.effect,
        design=one.design,
        status=one.status,
        reason=one.reason,
        estimate=one.estimate,
        interval=one.interval,
        p_adjusted=one.p.adjusted,
        n_tasks=one.n_tasks,
        favours=one.favours,
    )


def run_warnings(compared: Compared, rows: Sequence[TrialRow]) -> list[Coded]:
    """What concerns all comparisons."""
    found = []
    if not compared.settings.variants:
        found.append(coded("no_variants"))
    fallbacks = sum(1 for row in rows if row.values_from == "trial_output.json")
    if fallbacks:
        found.append(coded("fallback_values", count=fallbacks))
    if compared.index.duplicates:
        found.append(coded("duplicate_trials", count=compared.index.duplicates))
    return found


def totals(rows: Sequence[TrialRow]) -> InclusionTotals:
    """Counted from rows, whatever `inclusion.json` says its totals are."""
    counts = Counter(row.status for row in rows)
    return InclusionTotals(
        scheduled=len(rows), included=counts["included"], excluded=counts["excluded"], lost=counts["lost"]
    )


def values_from(rows: Sequence[TrialRow]) -> ValuesFrom:
    """Where the values stand."""
    counts = Counter(row.values_from for row in rows)
    return ValuesFrom(
        metrics_json=counts["metrics.json"], trial_output_json=counts["trial_output.json"], none=counts["none"]
    )


def _variants(compared: Compared, rows: Sequence[TrialRow]) -> list[VariantSummary]:
    by_variant: dict[str, list[TrialRow]] = {}
    for row in rows:
        by_variant.setdefault(row.variant_id, []).append(row)
    names = dict.fromkeys([compared.settings.baseline, *compared.settings.variants, *sorted(by_variant)])
    return [_variant(name, compared, by_variant.get(name, [])) for name in names]


def _variant(name: str, compared: Compared, rows: Sequence[TrialRow]) -> VariantSummary:
    counted = totals(rows)
    outcomes = Counter(row.outcome if row.outcome in _OUTCOMES else "none" for row in rows)
    return VariantSummary(
        variant_id=name,
        baseline=name == compared.settings.baseline,
        scheduled=counted.scheduled,
        included=counted.included,
        excluded=counted.excluded,
        lost=counted.lost,
        retried=sum(1 for row in rows if row.attempts > 1),
        outcomes=OutcomeCounts(
            success=outcomes["success"],
            failure=outcomes["failure"],
            missing=outcomes["missing"],
            error=outcomes["error"],
            none=outcomes["none"],
        ),
        metrics=tuple(_metrics_of(name, compared)),
    )


def _metrics_of(name: str, compared: Compared) -> list[VariantMetric]:
    """Empty for a variant that ran but stands in no plan."""
    found = []
    for metric in compared.settings.metrics:
        arm = compared.arms.get((name, metric.name))
        if arm is not None:
            found.append(
                VariantMetric(
                    metric=metric.name,
                    role=metric.role,
                    valid=arm.valid,
                    missing=arm.missing,
                    missing_by_cause=arm.missing_by_cause,
                    mean=arm.mean,
                    naive_se=arm.naive_se,
                    clustered_se=arm.clustered_se,
                    pass_k=arm.pass_k,
                )
            )
    return found


def _undeclared(compared: Compared, rows: Sequence[TrialRow]) -> list[str]:
    declared = {metric.name for metric in compared.settings.metrics}
    return sorted({name for row in rows for name in row.metrics} - declared)
