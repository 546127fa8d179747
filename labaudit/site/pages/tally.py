"""Trial readings, one by one, to what run pages say about all; memory grows with rules and hosts, not with trials."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from labaudit.core.merkle import TreeHasher
from labaudit.site.drawing import figures
from labaudit.site.drawing.places import Places
from labaudit.site.pages.trial_page import network_rows
from labaudit.site.reading.published_run import GRADE_NAMES
from labaudit.site.reading.trial_reading import TrialReading

Json = dict[str, Any]
EXAMPLES = 12


@dataclass
class RuleSeen:
    """One cap rule over all trials: how often, how low, and the first trials it concerns."""

    rule: str
    to: str
    sentence: str
    count: int = 0
    trials: list[Json] = field(default_factory=list)


@dataclass
class Tally:
    """Everything that is counted from trials."""

    places: Places
    values: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in GRADE_NAMES})
    examples: dict[tuple[str, str], list[Json]] = field(default_factory=lambda: defaultdict(list))
    rules: dict[tuple[str, str, str], RuleSeen] = field(default_factory=dict)
    levels: Counter[str] = field(default_factory=Counter)
    hosts: dict[tuple[str, str, str, str], list[int]] = field(default_factory=dict)
    modes: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    self_tests: dict[tuple[str, str, str, bool], int] = field(default_factory=dict)
    self_test_performed: Counter[str] = field(default_factory=Counter)
    violations: list[Json] = field(default_factory=list)
    violation_count: int = 0
    causes: Counter[tuple[str, str]] = field(default_factory=Counter)
    damaged: list[Json] = field(default_factory=list)
    a2a_trials: int = 0
    a2a_events: int = 0
    scores: int = 0
    primary: dict[str, object] = field(default_factory=dict)
    events: int = 0
    first_event: datetime | None = None
    bytes: int = 0
    tree: TreeHasher = field(default_factory=TreeHasher)

    def add(self, reading: TrialReading) -> None:
        """Takes in one trial."""
        self.tree.append_hash(reading.leaf)
        self.events += len(reading.events)
        self._add_time(reading)
        record = reading.record or {}
        self.bytes += sum(int(item.get("size") or 0) for item in record.get("files") or [])
        self.bytes += sum(int(item.get("size") or 0) for item in reading.artifacts)
        if reading.problems and len(self.damaged) < EXAMPLES:
            self.damaged.append({**self._example(reading), "problem": reading.problems[0]})
        self._add_grades(reading)
        self._add_network(reading)
        for name, cause in ((reading.metrics or {}).get("missing") or {}).items():
            self.causes[str(name), str(cause)] += 1
        if reading.a2a:
            self.a2a_trials += 1
            self.a2a_events += reading.a2a
        self.scores += len(reading.scores)

    def _add_time(self, reading: TrialReading) -> None:
        when = figures.moment(reading.events[0].get("ts")) if reading.events else None
        if when is not None and (self.first_event is None or when < self.first_event):
            self.first_event = when

    def _example(self, reading: TrialReading) -> Json:
        place = self.places.trial(reading.row)
        files = f"{place.path}#{place.event_prefix}files"
        return {"trial_id": reading.trial_id, "href": place.href, "files": files}

    def _add_grades(self, reading: TrialReading) -> None:
        grades = reading.grades or {}
        level = grades.get("integration_level")
        self.levels[str(level.get("observed")) if isinstance(level, dict) else "not_observed"] += 1
        for name in GRADE_NAMES:
            grade = grades.get(name)
            value = str(grade.get("value")) if isinstance(grade, dict) else "no evidence"
            self.values[name][value] += 1
            shown = self.examples[name, value]
            if len(shown) < EXAMPLES:
                shown.append(self._example(reading))
            for cap in (grade.get("caps") or []) if isinstance(grade, dict) else []:
                key = (name, str(cap.get("rule")), str(cap.get("to")))
                seen = self.rules.setdefault(key, RuleSeen(key[1], key[2], str(cap.get("sentence"))))
                seen.count += 1
                if len(seen.trials) < EXAMPLES:
                    seen.trials.append({**self._example(reading), "evidence": str(cap.get("evidence"))})

    def _add_network(self, reading: TrialReading) -> None:
        for row in network_rows(reading.network):
            total = self.hosts.setdefault((row["host"], row["port"], row["decision"], row["rule"]), [0, 0, 0, 0])
            for place, name in enumerate(("count", "up", "down")):
                total[place] += row[name]
            total[3] += 1
        inventory = reading.inventory
        network = (inventory or {}).get("network")
        if not isinstance(inventory, dict) or not isinstance(network, dict):
            self.modes["no evidence", "no evidence", "no evidence", "no evidence"] += 1
            return
        key = tuple(
            str(network.get(name) or "not stated")
            for name in ("mode_requested", "mode_effective", "enforcement_effective", "bypass_risk")
        )
        self.modes[key] += 1  # type: ignore[index]
        test = network.get("egress_self_test")
        test = test if isinstance(test, dict) else {}
        self.self_test_performed["performed" if test.get("performed") else "not performed"] += 1
        for case in test.get("cases") or []:
            target, wanted, found = (str(case.get(name)) for name in ("target", "expected", "observed"))
            named = (target, wanted, found, bool(case.get("ok")))
            self.self_tests[named] = self.self_tests.get(named, 0) + 1
        broken = inventory.get("violations")
        if isinstance(broken, dict) and (broken.get("state_leak") or broken.get("profile_invariant_violation")):
            self.violation_count += 1
            if len(self.violations) < EXAMPLES:
                self.violations.append({**self._example(reading), "notes": broken.get("notes") or []})
