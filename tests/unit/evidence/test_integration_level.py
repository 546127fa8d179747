"""The observed level over all combinations of evidence: never above the claim, never raised by less, explained."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from labaudit.evidence.integration_level import RANK, IntegrationLevelResolver, LevelEvidence

LEVELS: list[Any] = ["cli_basic", "cli_events", "otel", "sdk_control", "sdk_full"]
RESOLVER = IntegrationLevelResolver()
FLAGS = ("hooks_valid", "acks_verified", "control_declared", "boundaries_complete")
EVERYTHING = LevelEvidence(
    ran=True,
    claimed="sdk_full",
    hooks_valid=True,
    hook_events=9,
    steps=2,
    acks_verified=True,
    control_declared=True,
    span_count=4,
    boundaries=3,
    boundaries_complete=True,
)


def combinations() -> list[LevelEvidence]:
    found = []
    for level, spans, steps, events in product(LEVELS, (0, 4), (0, 2), (0, 9)):
        for flags in product((False, True), repeat=len(FLAGS)):
            changes: dict[str, Any] = dict(zip(FLAGS, flags, strict=True))
            found.append(
                replace(EVERYTHING, claimed=level, span_count=spans, steps=steps, hook_events=events, **changes)
            )
    return found


def test_no_evidence_lifts_a_level_above_its_claim() -> None:
    for evidence in combinations():
        assert evidence.claimed is not None
        assert RANK[RESOLVER.derive(evidence)] <= RANK[evidence.claimed]


def test_taking_evidence_away_never_raises_the_level() -> None:
    for evidence in combinations():
        level = RANK[RESOLVER.derive(evidence)]
        for name in FLAGS:
            assert RANK[RESOLVER.derive(replace(evidence, **{name: False}))] <= level
        for name in ("span_count", "steps", "hook_events"):
            assert RANK[RESOLVER.derive(replace(evidence, **{name: 0}))] <= level


def test_a_level_below_its_claim_says_what_is_missing() -> None:
    for evidence in combinations():
        derived = RESOLVER.explain(evidence)
        assert derived.why
        if derived.level != evidence.claimed:
            assert derived.caps, evidence


@pytest.mark.parametrize("level", LEVELS)
def test_everything_seen_gives_exactly_what_is_claimed(level: Any) -> None:
    assert RESOLVER.derive(replace(EVERYTHING, claimed=level)) == level


def test_without_a_manifest_everything_is_cli_basic_and_without_a_run_nothing_is() -> None:
    derived = RESOLVER.explain(replace(EVERYTHING, claimed=None, manifest_problem="it is half a JSON"))
    assert (derived.level, derived.caps) == ("cli_basic", ("it is half a JSON",))
    assert RESOLVER.derive(replace(EVERYTHING, ran=False)) == "not_observed"


def test_spans_alone_are_called_otel_though_events_were_claimed() -> None:
    evidence = replace(EVERYTHING, claimed="cli_events", hooks_valid=False, hook_events=0)
    assert RESOLVER.derive(evidence) == "otel"
