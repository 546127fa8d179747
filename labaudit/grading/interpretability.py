"""How closely a trial can be followed: step > turn > output."""

from __future__ import annotations

from collections.abc import Iterator

from labaudit.evidence.observation import NotObserved, ObservedTrial
from labaudit.grading.scale import CapFinding, grade
from labaudit.records.grades import Grade

STREAM = "harness_events.jsonl"


def grade_interpretability(observed: ObservedTrial) -> Grade[str]:
    """The grade of one trial."""
    names = ("framework_events", "hooks", "traces", "imported")
    sources = [name for name in names if observed.sources[name].present]  # type: ignore[index]
    return grade("interpretability", _caps(observed), sources)  # type: ignore[arg-type]


def _caps(observed: ObservedTrial) -> Iterator[CapFinding]:
    hooks = observed.hooks
    if observed.lost:
        yield CapFinding("P01", "not_observed", "events.jsonl", "The attempt was lost; nothing of it can be read.")
        return
    if not hooks.present:
        to = "turn" if _spans(observed) else "output"
        yield CapFinding("P02", to, STREAM, "There is no hook stream, so no step is visible.")
        return
    if not hooks.valid:
        to = "turn" if _spans(observed) else "output"
        yield CapFinding(
            "P03", to, STREAM, f"The hook stream breaks {hooks.findings_total} rule(s) and is not counted."
        )
        return
    if isinstance(hooks.step_count, NotObserved) or hooks.step_count == 0:
        to = "turn" if _turns(observed) or _spans(observed) else "output"
        yield CapFinding("P04", to, STREAM, "The stream has no step events.")
    if not isinstance(hooks.acks_missing, NotObserved) and hooks.acks_missing:
        yield CapFinding("P05", "turn", STREAM, f"{hooks.acks_missing} step end(s) have no control_ack.")
    if not isinstance(hooks.causal_without_step, NotObserved) and hooks.causal_without_step:
        said = f"{hooks.causal_without_step} causal event(s) name no step."
        yield CapFinding("P06", "turn", STREAM, said)


def _turns(observed: ObservedTrial) -> bool:
    turns = observed.hooks.turn_count
    return not isinstance(turns, NotObserved) and turns > 0


def _spans(observed: ObservedTrial) -> bool:
    spans = observed.traces.span_count
    return not isinstance(spans, NotObserved) and spans > 0
