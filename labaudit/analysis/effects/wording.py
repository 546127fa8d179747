"""Codes of reasons and warnings to the sentences that a reader sees.

A code is stable and may be tested for; a sentence says what was seen and what follows, and nothing beyond that.
"""

from __future__ import annotations

from labaudit.records.comparisons import Coded

SENTENCES: dict[str, str] = {
    # Why there is no estimate.
    "variant_without_trials": "No trial of this variant was scheduled or recorded.",
    "baseline_without_trials": "No trial of the baseline was scheduled or recorded.",
    "metric_not_produced": "No trial produced this metric: all {missing} values are missing.",
    "metric_not_usable": "No value of this metric can be used: {invalid} of {missing} are not numbers of its type.",
    "no_pair_left": "After the policy {policy} no task has a value in both arms.",
    "worst_not_declared": "treat_as_failure needs a worst value for a continuous metric; declare metrics[].worst.",
    "nonpositive_for_log_ratio": "{tasks} tasks have a mean of zero or below, so that no log ratio exists.",
    "median_needs_pairs": "The median of task differences needs the same tasks in both arms.",
    # Why a number is not there.
    "one_unit": "One resampling unit shows no spread, so that no interval can be given.",
    "constant_metric": "All values are equal: nothing shows how far they could vary.",
    "zero_variance": "All units have the same difference, so that every resample is the same.",
    "within_needs_replicates": "Tasks taken as fixed need at least two valid replicates per task in each arm.",
    "within_not_for_median": "There is no replicate-only error of a median of differences.",
    "unbounded_metric": "The metric has no declared range, so that missing values could be anything.",
    "not_in_plan": "The metric is not in the analysis plan: no p-value is given for what was not planned.",
    "no_p_value": "No p-value could be computed.",
    "not_estimated": "There is no estimate.",
    "detectable_not_for_median": "No detectable effect is computed for a median of differences.",
    "bounds_not_for_effect": "Bounds are computed for differences of proportions; this effect is another.",
    "no_spread": "Without a spread there is no detectable effect to compute.",
    # What a reader should know.
    "few_tasks": "{units} resampling units: with fewer than 20 an interval may cover less often than it says.",
    "few_resamples": "{resamples} resamples do not reach the ends of an interval of this level; ask for more of them.",
    "few_informative_tasks": "So few units differ that the bootstrap has no spread to divide by; Student's t was used.",
    "zero_variance_bound": "No difference varies between units; the interval bounds what so many units can hide.",
    "skewed_metric": "The values are strongly skewed and the effect is a difference of means: at this number of tasks "
    "the interval may cover less often than it says; log_ratio or median_diff are safer.",
    "median_of_clusters": "The median is that of the mean differences of {units} clusters, not of single tasks.",
    "method_not_applicable": "The method {method} does not fit this effect; the automatic one was used.",
    "level_not_reached": "So few units cannot give the level asked for; the widest interval has {achieved:.4f}.",
    "ties_widened": "Ties made the interval a single point; it was widened to the next values.",
    "interval_and_p_disagree": "The interval and the p-value fall on different sides of the line: read as undecided.",
    "cannot_reach_level": "Even if all {informative} informative units agreed, p could not fall below {smallest:.4g}.",
    "unequal_replicates": "Task means rest on {low} to {high} values.",
    "self_reported_primary": "The harness reports this primary metric on itself.",
    "undeclared_metric": "The plan names a metric that the experiment does not declare.",
    "missing_values": "{missing} of {scheduled} trials have no usable value.",
    "differential_missingness": "The arms lose trials at different rates (Fisher p = {p:.3g}): what is missing may "
    "make the difference.",
    "imputed_values": "{imputed} missing values were imputed.",
    "failure_values": "{filled} missing values were counted as the worst value.",
    "unpaired_tasks": "The arms ran different tasks ({baseline_only} only in the baseline, {variant_only} only in the "
    "variant): the estimate is unpaired and the tasks may make the difference.",
    "retried_trials": "Trials were retried: {baseline} in the baseline, {variant} in the variant.",
    "fallback_values": "{count} trials have no metrics.json; their values are the harness's own output.",
    "no_variants": "The experiment has no variant besides its baseline: there is nothing to compare.",
    "duplicate_trials": "{count} trials repeat a (variant, task, replicate); the first of each counts.",
    "cluster_label_missing": "{tasks} tasks have no value for the cluster field {field}; each is its own cluster.",
    "cluster_unreadable": "The stored dataset could not be read, so that tasks were not clustered by {field}.",
}


def coded(code: str, **values: object) -> Coded:
    """The reason or warning with its numbers filled in."""
    return Coded(code=code, sentence=SENTENCES[code].format(**values))
