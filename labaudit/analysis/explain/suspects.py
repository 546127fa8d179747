"""Confounds and behaviour to `suspects.json`: one family, BH-corrected, each with its evidence source and coverage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labaudit.analysis.effects.families import Compared
from labaudit.analysis.explain.behaviour import behaviour_suspects
from labaudit.analysis.explain.confounds import Arms, Suspect, confound_suspects, framework_source
from labaudit.analysis.explain.evidence_table import SOURCES, EvidenceTable
from labaudit.analysis.statistics.corrections import benjamini_hochberg
from labaudit.analysis.trials.rows import TrialRow

ALPHA = 0.05


def find_suspects(compared: Compared, rows: Sequence[TrialRow], evidence: EvidenceTable) -> dict[str, Any]:
    """The content of `suspects.json`."""
    found: list[Suspect] = []
    baseline = [row for row in rows if row.variant_id == compared.settings.baseline]
    for variant in compared.settings.variants:
        mine = [row for row in rows if row.variant_id == variant]
        if mine and baseline:
            found.extend(confound_suspects(Arms(variant, mine, baseline), evidence))
    found.extend(behaviour_suspects(compared, evidence, framework_source(rows)))
    adjusted = _adjusted(found)
    ids = [row.trial_id for row in rows if row.status != "lost"]
    return {
        "schema_version": "suspects_v1",
        "correction": "bh",
        "alpha": ALPHA,
        "note": "A suspect is an association in the evidence named beside it; none of them establishes a cause.",
        "evidence_coverage": {
            source: {"covered": evidence.coverage(source, ids), "total": len(ids)} for source in SOURCES
        },
        "suspects": [
            _as_json(suspect, p_adjusted) for suspect, p_adjusted in zip(found, adjusted, strict=True)
        ],
    }


def _adjusted(found: Sequence[Suspect]) -> list[float | None]:
    """One family: every check that has a p-value."""
    tested = [position for position, suspect in enumerate(found) if suspect.p is not None]
    corrected = benjamini_hochberg([found[position].p for position in tested])
    result: list[float | None] = [None] * len(found)
    for position, p in zip(tested, corrected, strict=True):
        result[position] = p
    return result


def _as_json(suspect: Suspect, p_adjusted: float | None) -> dict[str, object]:
    return {
        "variant": suspect.variant,
        "kind": suspect.kind,
        "id": suspect.id,
        "status": _status(suspect, p_adjusted),
        "sentence": suspect.sentence,
        "evidence_source": suspect.evidence_source,
        "coverage": {"covered": suspect.covered, "total": suspect.total},
        "statistic": suspect.statistic,
        "value": suspect.value,
        "p": suspect.p,
        "p_adjusted": p_adjusted,
        "method": suspect.method,
    }


def _status(suspect: Suspect, p_adjusted: float | None) -> str:
    if suspect.insufficient:
        return "insufficient_evidence"
    if suspect.certain or (p_adjusted is not None and p_adjusted < ALPHA):
        return "flagged"
    return "not_flagged"
