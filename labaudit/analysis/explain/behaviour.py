"""Features of behaviour to suspects: which of them change together with the effect, task by task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labaudit.analysis.effects.draft import Draft
from labaudit.analysis.effects.families import Compared
from labaudit.analysis.explain.confounds import Suspect
from labaudit.analysis.explain.evidence_table import EvidenceTable
from labaudit.analysis.statistics.spearman import spearman_many

# feature -> the evidence that shows it
FEATURES: dict[str, str] = {
    "duration_seconds": "framework_events",
    "steps": "hooks",
    "turns": "hooks",
    "tool_calls": "hooks",
    "failed_calls": "hooks",
    "errors": "hooks",
    "tokens_in": "hooks",
    "tokens_out": "hooks",
    "spans": "traces",
    "failed_spans": "traces",
    "proxy_allowed": "network_proxy",
    "proxy_blocked": "network_proxy",
}
FEWEST_TASKS = 5
Vector = NDArray[np.float64]


def behaviour_suspects(compared: Compared, evidence: EvidenceTable, recorded_by: str) -> list[Suspect]:
    """Spearman correlations of feature differences with the first primary metric's differences, per variant.

    `recorded_by` is the source of what trial records say.
    """
    drafts = _first_primary(compared)
    wanted: list[tuple[Draft, str, Vector, Vector, int]] = []
    for draft in drafts:
        for feature in FEATURES:
            x, y, total = _paired_changes(draft, compared, evidence, feature)
            wanted.append((draft, feature, x, y, total))
    enough = [len(x) >= FEWEST_TASKS for _, _, x, _, _ in wanted]
    pairs = [(x, y) for (_, _, x, y, _), usable in zip(wanted, enough, strict=True) if usable]
    found = iter(spearman_many(pairs, compared.settings.resampler))
    suspects = []
    for (draft, feature, x, _, total), usable in zip(wanted, enough, strict=True):
        correlation = next(found) if usable else None
        covered = len(x)
        source = recorded_by if FEATURES[feature] == "framework_events" else FEATURES[feature]
        if correlation is None:
            few = f"is known for {covered} of {total} tasks and {FEWEST_TASKS} are needed"
            why = "does not vary between tasks" if usable else few
            sentence = f"The change of {feature} {why}: no association can be computed."
            suspects.append(_suspect(draft, source, feature, covered, total, sentence, None, None))
        else:
            sentence = (
                f"Checked for an association between the changes of {feature} and {draft.metric.name} over {covered} "
                f"tasks (Spearman {correlation.rho:+.2f}); it says nothing about cause."
            )
            suspects.append(_suspect(draft, source, feature, covered, total, sentence, correlation.rho, correlation.p))
    return suspects


def _suspect(
    draft: Draft, source: str, feature: str, covered: int, total: int, sentence: str, rho: float | None, p: float | None
) -> Suspect:
    return Suspect(
        variant=draft.variant_id,
        kind="behaviour",
        id=feature,
        evidence_source=source,
        covered=covered,
        total=total,
        sentence=sentence,
        statistic=None if rho is None else "spearman_rho",
        value=rho,
        p=p,
        method=None if p is None else "permutation",
        insufficient=rho is None,
    )


def _first_primary(compared: Compared) -> list[Draft]:
    """Per variant the first primary comparison that has pairs."""
    chosen: dict[str, Draft] = {}
    for draft in compared.drafts:
        if draft.metric.name in compared.settings.leading and draft.prepared is not None:
            chosen.setdefault(draft.variant_id, draft)
    return [chosen[variant] for variant in compared.settings.variants if variant in chosen]


def _paired_changes(
    draft: Draft, compared: Compared, evidence: EvidenceTable, feature: str
) -> tuple[Vector, Vector, int]:
    """Task by task the change of the feature and of the metric, where both arms show the feature."""
    assert draft.prepared is not None
    differences = draft.prepared.differences
    sides = [compared.rows(name) for name in (draft.variant_id, compared.settings.baseline)]
    ids: Sequence[str] = compared.table.trial_ids
    changes, effects = [], []
    for place, task in enumerate(differences.tasks.tolist()):
        means = []
        for rows in sides:
            values = [
                evidence.features[ids[row]][feature]
                for row in rows[task].tolist()
                if row >= 0 and feature in evidence.features.get(ids[row], {})
            ]
            means.append(sum(values) / len(values) if values else None)
        if means[0] is not None and means[1] is not None:
            changes.append(means[0] - means[1])
            effects.append(float(differences.difference[place]))
    return np.array(changes), np.array(effects), differences.n
