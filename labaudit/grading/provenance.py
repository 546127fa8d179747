"""What ties a trial's files to it: attested > signed > hashed > none.

Grades are written before anything is signed, so `grades.json` says at most `hashed`; `signed` and `attested` are what
verify establishes with a trust anchor.
"""

from __future__ import annotations

from collections.abc import Iterator

from labaudit.evidence.observation import ObservedTrial
from labaudit.grading.scale import CapFinding, grade
from labaudit.records.grades import Grade


def grade_provenance(observed: ObservedTrial) -> Grade[str]:
    """The grade of one trial at sealing time."""
    sources = [name for name in ("framework_events", "imported") if observed.sources[name].present]
    return grade("provenance", _caps(observed), sources)  # type: ignore[arg-type]


def _caps(observed: ObservedTrial) -> Iterator[CapFinding]:
    yield CapFinding("V01", "hashed", "events.head", "Grades are computed before the run is signed.")
    if not observed.events.present:
        yield CapFinding("V02", "none", "events.jsonl", "There is no event log.")
    elif not observed.events.chain_ok:
        why = observed.events.problem or "its chain does not hold"
        yield CapFinding("V03", "none", "events.jsonl", f"The event log does not hold: {why}.")
    elif not observed.events.sealed:
        yield CapFinding("V04", "none", "events.jsonl", "The event log was never sealed.")
