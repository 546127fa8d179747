"""Observed trials to `grades.json`, for one trial and for a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from labaudit.evidence.observation import SOURCES, ObservedTrial
from labaudit.grading.comparability import grade_comparability, not_a_trials_property
from labaudit.grading.interpretability import grade_interpretability
from labaudit.grading.isolation import PROVIDER_TOOLS, grade_isolation
from labaudit.grading.provenance import grade_provenance
from labaudit.grading.replay import grade_replay
from labaudit.grading.scale import CapFinding, grade
from labaudit.records.comparisons import Comparisons
from labaudit.records.grades import Grade, Grades
from labaudit.records.inclusion import Inclusion
from labaudit.store.atomic import write_bytes

LEVELS = ("sdk_full", "sdk_control", "cli_events", "otel", "cli_basic", "not_observed")
IMPORTED = "Another tool ran the trials; nothing of how it did was observed here."
PER_TRIAL = ("isolation", "replay", "interpretability", "provenance")


class RunGrader:
    """Takes in trials one by one, so that memory does not grow with the run."""

    def __init__(self) -> None:
        self._trials = 0
        self._caps: dict[str, dict[tuple[str, str], tuple[int, str, str]]] = {name: {} for name in PER_TRIAL}
        self._levels: dict[str, set[str]] = {"expected": set(), "claimed": set(), "observed": set()}
        self._sources = {name: [0, 0] for name in SOURCES}
        self._imported = False
        self._networked = False

    def add(self, trial: Grades, observed: ObservedTrial) -> None:
        """Takes in one trial's grades."""
        self._trials += 1
        self._imported |= observed.evidence_origin == "imported"
        self._networked |= getattr(observed.network, "mode_effective", "none") != "none"
        for name in PER_TRIAL:
            one: Grade[Any] = getattr(trial, name)
            for cap in one.caps:
                key = (cap.rule, cap.to)
                first = (0, f"trials/{observed.ids.trial_id}/{cap.evidence}", cap.sentence)
                count, evidence, sentence = self._caps[name].get(key, first)
                self._caps[name][key] = (count + 1, evidence, sentence)
        level = trial.integration_level
        for kind in self._levels:
            self._levels[kind].add(getattr(level, kind) or "")
        for source in SOURCES:
            self._sources[source][1] += 1
            self._sources[source][0] += int(observed.sources[source].present)

    def grades(self, run_id: str, inclusion: Inclusion, comparisons: Comparisons | None) -> Grades:
        """The run's grades: on each scale the lowest of its trials, with how many trials each cap concerns."""
        fields: dict[str, Any] = {name: self._lowest(name) for name in PER_TRIAL}
        fields["comparability"] = grade_comparability(inclusion, comparisons, imported=self._imported)
        caveats = _caveats(networked=self._networked, imported=self._imported)
        return Grades.from_json(
            {
                "schema_version": "grades_v1",
                "scope": "run",
                "run_id": run_id,
                "integration_level": {
                    "expected": _lowest_level(self._levels["expected"]),
                    "claimed": _lowest_level(self._levels["claimed"]),
                    "observed": _lowest_level(self._levels["observed"]) or "not_observed",
                },
                "evidence_sources": {
                    name: {"present": have > 0, "covered": have, "total": total}
                    for name, (have, total) in self._sources.items()
                },
                **{name: value.to_json() for name, value in fields.items()},
                "caveats": caveats,
            }
        )

    def _lowest(self, name: str) -> Grade[str]:
        if not self._trials:
            return grade(name, [CapFinding("A00", "not_observed", "inclusion.json", "The run has no trial.")], ())
        caps = [
            CapFinding(rule, to, evidence, f"{count} of {self._trials} trials: {sentence}")
            for (rule, to), (count, evidence, sentence) in self._caps[name].items()
        ]
        sources = [source for source, (have, _) in self._sources.items() if have]
        return grade(name, caps, sources)


def _caveats(*, networked: bool, imported: bool) -> list[dict[str, str]]:
    found = [{"id": "provider_side_tools", "sentence": PROVIDER_TOOLS}] if networked else []
    return found + ([{"id": "imported_evidence", "sentence": IMPORTED}] if imported else [])


def grade_trial(observed: ObservedTrial) -> Grades:
    """All grades of one trial."""
    networked = getattr(observed.network, "mode_effective", "none") != "none"
    parts: dict[str, Grade[str]] = {
        "isolation": grade_isolation(observed),
        "replay": grade_replay(observed),
        "interpretability": grade_interpretability(observed),
        "comparability": not_a_trials_property(),
        "provenance": grade_provenance(observed),
    }
    level = observed.level
    return Grades.from_json(
        {
            "schema_version": "grades_v1",
            "scope": "trial",
            "ids": observed.ids.to_json(),
            "integration_level": {"expected": level.expected, "claimed": level.claimed, "observed": level.observed},
            "evidence_sources": {
                name: {"present": item.present, "covered": item.covered, "total": item.total}
                for name, item in observed.sources.items()
            },
            **{name: value.to_json() for name, value in parts.items()},
            "caveats": _caveats(networked=networked, imported=observed.evidence_origin == "imported"),
        }
    )


def grade_run(
    run_id: str, trials: Iterable[ObservedTrial], inclusion: Inclusion, comparisons: Comparisons | None
) -> Grades:
    """The grades of a run from the observation of its trials."""
    grader = RunGrader()
    for observed in trials:
        grader.add(grade_trial(observed), observed)
    return grader.grades(run_id, inclusion, comparisons)


def emit(grades: Grades, path: Any) -> None:
    """The seed's `Grades.emit`: writes `grades.json`."""
    write_bytes(path, grades.to_bytes())


def _lowest_level(levels: set[str]) -> str | None:
    named = [level for level in levels if level]
    return max(named, key=LEVELS.index) if named else None
