"""Design, missingness and retries to what may be compared: paired > qualified > descriptive > not_comparable.

Reads `inclusion.json` and `comparisons.json` as records, so that verify recomputes it without any statistics library.
"""

from __future__ import annotations

from collections.abc import Iterator

from labaudit.grading.scale import CapFinding, grade
from labaudit.records.comparisons import Comparison, Comparisons
from labaudit.records.fields import EvidenceSource
from labaudit.records.grades import Grade
from labaudit.records.inclusion import Inclusion

DIFFERENTIAL_LEVEL = 0.05
ANALYSIS = "analysis/comparisons.json"


def grade_comparability(inclusion: Inclusion, comparisons: Comparisons | None, *, imported: bool) -> Grade[str]:
    """The grade of a run."""
    sources: tuple[EvidenceSource, ...] = ("imported",) if imported else ("framework_events",)
    return grade("comparability", _caps(inclusion, comparisons, imported), sources)


def not_a_trials_property() -> Grade[str]:
    """A single trial compares nothing."""
    cap = CapFinding("C00", "not_observed", "inclusion.json", "Comparability is a property of a run, not of one trial.")
    return grade("comparability", [cap], ())


def _caps(inclusion: Inclusion, comparisons: Comparisons | None, imported: bool) -> Iterator[CapFinding]:
    if comparisons is None:
        yield CapFinding("C01", "not_observed", ANALYSIS, "The run has no analysis.")
        return
    primary = [item for item in comparisons.comparisons if item.role == "primary"]
    if not comparisons.variants or not comparisons.comparisons:
        yield CapFinding("C02", "not_comparable", ANALYSIS, "There is only a baseline; nothing is compared.")
        return
    if not primary:
        yield CapFinding("C03", "descriptive", ANALYSIS, "The plan names no primary metric.")
    for item in primary:
        yield from _comparison_caps(item)
    totals = inclusion.totals
    if totals.lost or totals.excluded:
        said = f"{totals.lost} trial(s) were lost and {totals.excluded} excluded of {totals.scheduled} scheduled."
        yield CapFinding("C09", "qualified", "inclusion.json", said)
    retried = sum(1 for row in inclusion.rows if row.attempts > 1)
    if retried:
        yield CapFinding("C10", "qualified", "inclusion.json", f"{retried} trial(s) needed more than one attempt.")
    if imported:
        said = "Order, blocking and retries of the original runs are not known."
        yield CapFinding("C11", "descriptive", "inclusion.json", said)


def _comparison_caps(item: Comparison) -> Iterator[CapFinding]:
    name = f"{item.metric} of {item.variant}"
    if item.status == "not_estimable":
        why = item.reason.sentence if item.reason else "no reason is given"
        yield CapFinding("C04", "not_comparable", ANALYSIS, f"{name} cannot be estimated: {why}")
    if item.design == "unpaired":
        yield CapFinding("C05", "descriptive", ANALYSIS, f"{name}: the task sets do not match, so arms are not paired.")
    if item.arms.baseline.missing or item.arms.variant.missing:
        counts = f"{item.arms.baseline.missing} (baseline) and {item.arms.variant.missing} (variant)"
        said = f"{name}: {counts} values are missing."
        yield CapFinding("C06", "qualified", ANALYSIS, said)
    differential = item.missingness.differential_p
    if differential is not None and differential < DIFFERENTIAL_LEVEL:
        said = f"{name}: the arms lose trials at different rates (Fisher p = {differential:.3g})."
        yield CapFinding("C07", "descriptive", ANALYSIS, said)
    if item.self_reported:
        yield CapFinding("C08", "qualified", ANALYSIS, f"{name} is reported by the harness on itself.")
